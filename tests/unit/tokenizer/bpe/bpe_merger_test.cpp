// SPDX-License-Identifier: Apache-2.0
#include "bpe/bpe_merger.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/cpu_time.hpp"
#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

using symbols_list = std::vector<std::int32_t>;

// Implements the definition of BPE: searches all pairs for each merge.
symbols_list naive_merge(const std::vector<merge_rule>& rules, symbols_list symbols) {
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::int32_t>> ranks;
  for (std::size_t rank = 0; rank < rules.size(); ++rank) {
    ranks[{rules[rank].left, rules[rank].right}] = {rank, rules[rank].result};
  }
  for (;;) {
    auto best = ranks.end();
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found == ranks.end()) continue;
      if (best == ranks.end() || found->second.first < best->second.first) {
        best = found;
        place = i;
      }
    }
    if (best == ranks.end()) return symbols;
    symbols[place] = best->second.second;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

symbols_list merge(bpe_merger& merger, symbols_list symbols) {
  symbols.resize(merger.merge(symbols));
  return symbols;
}

// A random vocabulary of tokens made of `letters` different letters. Every rule joins two existing
// tokens into a new string. Ranks are in random order, so merges compete and heap entries can
// become stale.
std::vector<merge_rule> random_rules(std::mt19937_64& random, std::int32_t letters,
                                     std::size_t count) {
  std::vector<std::string> tokens;
  std::map<std::string, std::int32_t> ids;
  const auto id_of = [&](const std::string& token) {
    const auto [place, is_new] = ids.emplace(token, static_cast<std::int32_t>(tokens.size()));
    if (is_new) tokens.push_back(token);
    return place->second;
  };
  for (std::int32_t i = 0; i < letters; ++i) id_of(std::string(1, static_cast<char>('a' + i)));
  std::vector<merge_rule> rules;
  while (rules.size() < count) {
    const auto left = static_cast<std::int32_t>(random() % tokens.size());
    const auto right = static_cast<std::int32_t>(random() % tokens.size());
    const std::string joined =
        tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    rules.push_back({left, right, id_of(joined)});
  }
  std::shuffle(rules.begin(), rules.end(), random);
  return rules;
}

// Merging agrees with the definition of BPE. Tests lengths below and above the length at which the
// merger switches to another algorithm.
TEST(BpeMerger, AgreesWithTheDefinitionOnRandomVocabularies) {
  std::mt19937_64 random(test::seed(60));
  for (int round = 0; round < 200; ++round) {
    const auto letters = static_cast<std::int32_t>(1 + random() % 4);
    const auto rules = random_rules(random, letters, 1 + random() % 40);
    const merge_table table(rules);
    bpe_merger merger(table);
    for (int i = 0; i < 20; ++i) {
      symbols_list symbols(i < 15 ? random() % 30 : 90 + random() % 120);
      for (auto& s : symbols) s = static_cast<std::int32_t>(random()) & 0xFF;
      for (auto& s : symbols) s %= letters;
      ASSERT_EQ(merge(merger, symbols), naive_merge(rules, symbols)) << "round " << round;
    }
  }
}

TEST(BpeMerger, LeavesWhatHasNoMerge) {
  const merge_table table({});
  bpe_merger merger(table);
  EXPECT_EQ(merge(merger, {}), symbols_list());
  EXPECT_EQ(merge(merger, {7}), symbols_list({7}));
  EXPECT_EQ(merge(merger, {7, 7, 7}), symbols_list({7, 7, 7}));
  EXPECT_EQ(merge(merger, symbols_list(1000, 7)), symbols_list(1000, 7));
}

TEST(BpeMerger, MergesTheLeftmostOfEqualRanks) {
  const std::vector<merge_rule> rules = {{0, 0, 1}};
  const merge_table table(rules);
  bpe_merger merger(table);
  EXPECT_EQ(merge(merger, {0, 0, 0}), symbols_list({1, 0}));
  symbols_list expected(250, 1);
  expected.push_back(0);
  EXPECT_EQ(merge(merger, symbols_list(501, 0)), expected);
}

// A megabyte without a break would take hours if each merge scanned all pairs. The time limit is
// loose, for sanitizers and busy machines. Release builds need about 0.1 s.
TEST(BpeMerger, TakesLittleLongerThanLinearTime) {
  std::vector<merge_rule> rules;
  rules.reserve(16);
  for (std::int32_t i = 0; i < 16; ++i) rules.push_back({i, i, i + 1});  // 2, 4, ... equal letters
  const merge_table table(rules);
  bpe_merger merger(table);
  const double start = test::cpu_seconds();
  EXPECT_EQ(merge(merger, symbols_list(1 << 20, 0)), symbols_list(16, 16));
  EXPECT_LT(test::cpu_seconds() - start, 20.0);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
