// SPDX-License-Identifier: Apache-2.0
#include "models/word_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

// More words than it has room for: it forgets, and never mixes up.
void expect_back_or_nothing(std::size_t memory_bytes, std::size_t least_known) {
  word_memory memory(memory_bytes);
  EXPECT_LE(memory.size_bytes(), std::max(memory_bytes, std::size_t{9} << 10));
  std::size_t known = 0;
  for (std::int32_t i = 0; i < 300000; ++i) {
    const std::string word = "word" + std::to_string(i);
    ASSERT_FALSE(memory.find(word));
    memory.put(word, ids_list{i, -i});
    const auto last = memory.find(word);
    ASSERT_TRUE(last);
    ASSERT_EQ((*last)[0], i);
    const auto early = memory.find("word" + std::to_string(i / 2));
    if (early) {
      ASSERT_EQ((*early)[1], -(i / 2));
    }
    known += early.has_value();
  }
  EXPECT_GT(known, least_known);
  EXPECT_LT(known, 299999U);
}

TEST(WordMemory, GivesBackWhatItWasGivenOrNothing) {
  expect_back_or_nothing(std::size_t{9} << 20, 1000);
  expect_back_or_nothing(std::size_t{1} << 20, 1000);
  expect_back_or_nothing(0, 10);
}

TEST(WordMemory, RefusesWhatIsTooLong) {
  word_memory memory(0);
  const std::string longest(word_memory::max_word_bytes, 'x');
  memory.put(longest, ids_list(word_memory::max_ids, 7));
  ASSERT_TRUE(memory.find(longest));
  EXPECT_EQ(memory.find(longest)->size(), word_memory::max_ids);
  memory.put(longest + "x", ids_list{1});
  EXPECT_FALSE(memory.find(longest + "x"));
  memory.put("y", ids_list(word_memory::max_ids + 1, 7));
  EXPECT_FALSE(memory.find("y"));
}

TEST(WordMemory, KeepsWordsWithoutIds) {
  word_memory memory(0);
  memory.put("nothing", {});
  ASSERT_TRUE(memory.find("nothing"));
  EXPECT_TRUE(memory.find("nothing")->empty());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
