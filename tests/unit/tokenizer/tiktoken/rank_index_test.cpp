// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/rank_index.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::tokenizer::detail {
namespace {

TEST(RankIndex, FindsWhatWasAddedAndNothingElse) {
  token_table tokens;
  rank_index index(tokens);
  for (std::int32_t id = 0; id < 5000; ++id) {  // past several growths
    tokens.add(2 * id, "token " + std::to_string(id));
    EXPECT_EQ(index.add(2 * id), std::nullopt);
  }
  for (std::int32_t id = 0; id < 5000; ++id) {
    EXPECT_EQ(index.find("token " + std::to_string(id)), 2 * id);
  }
  EXPECT_EQ(index.find("token 5000"), std::nullopt);
  EXPECT_EQ(index.find(""), std::nullopt);
}

TEST(RankIndex, KeepsTheFirstOfTwoTokensWithTheSameBytes) {
  token_table tokens;
  rank_index index(tokens);
  tokens.add(7, "a");
  tokens.add(3, "a");
  EXPECT_EQ(index.add(7), std::nullopt);
  EXPECT_EQ(index.add(3), 7);
  EXPECT_EQ(index.find("a"), 7);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
