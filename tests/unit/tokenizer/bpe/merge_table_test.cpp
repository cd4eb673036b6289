// SPDX-License-Identifier: Apache-2.0
#include "bpe/merge_table.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

TEST(MergeTable, FindsEachRuleByItsPair) {
  constexpr std::int32_t high = std::numeric_limits<std::int32_t>::max() - 1;
  const std::vector<merge_rule> rules = {{1, 2, 10}, {2, 1, 11}, {0, 0, 12}, {high, high, 13}};
  const merge_table table(rules);
  for (std::uint32_t rank = 0; rank < rules.size(); ++rank) {
    const auto found = table.find(rules[rank].left, rules[rank].right);
    EXPECT_EQ(found.rank, rank);
    EXPECT_EQ(found.result, rules[rank].result);
  }
  EXPECT_EQ(table.find(1, 1).rank, merge_table::no_rank);
  EXPECT_EQ(table.find(0, high).rank, merge_table::no_rank);
}

TEST(MergeTable, HoldsNoRuleAtAll) {
  EXPECT_EQ(merge_table({}).find(0, 0).rank, merge_table::no_rank);
}

// If two rules have the same pair, the pair has the rank of the later rule, as in Hugging Face's
// map of merges.
TEST(MergeTable, TakesTheLaterOfTwoRulesForOnePair) {
  const std::vector<merge_rule> rules = {{1, 2, 10}, {3, 4, 11}, {1, 2, 10}};
  EXPECT_EQ(merge_table(rules).find(1, 2).rank, 2U);
}

TEST(MergeTable, KeepsManyRulesApart) {
  std::vector<merge_rule> rules;
  for (std::int32_t left = 0; left < 200; ++left) {
    for (std::int32_t right = 0; right < 200; right += 3)
      rules.push_back({left, right, left ^ right});
  }
  const merge_table table(rules);
  for (std::int32_t left = 0; left < 200; ++left) {
    for (std::int32_t right = 0; right < 200; ++right) {
      const auto found = table.find(left, right);
      ASSERT_EQ(found.rank != merge_table::no_rank, right % 3 == 0) << left << ' ' << right;
      ASSERT_EQ(found.result, right % 3 == 0 ? left ^ right : -1);
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
