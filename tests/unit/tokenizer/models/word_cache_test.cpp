// SPDX-License-Identifier: Apache-2.0
#include "models/word_cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

// With more words than it has room for, the cache forgets some words but never confuses them.
void expect_back_or_nothing(std::size_t cache_bytes, std::size_t least_known) {
  word_cache cache(cache_bytes);
  EXPECT_LE(cache.size_bytes(), std::max(cache_bytes, std::size_t{9} << 10));
  std::size_t known = 0;
  for (std::int32_t i = 0; i < 300000; ++i) {
    const std::string word = "word" + std::to_string(i);
    ASSERT_FALSE(cache.find(word));
    cache.put(word, ids_list{i, -i});
    const auto last = cache.find(word);
    ASSERT_TRUE(last);
    ASSERT_EQ((*last)[0], i);
    const auto early = cache.find("word" + std::to_string(i / 2));
    if (early) {
      ASSERT_EQ((*early)[1], -(i / 2));
    }
    known += early.has_value();
  }
  EXPECT_GT(known, least_known);
  EXPECT_LT(known, 299999U);
}

TEST(WordCache, GivesBackWhatItWasGivenOrNothing) {
  expect_back_or_nothing(std::size_t{9} << 20, 1000);
  expect_back_or_nothing(std::size_t{1} << 20, 1000);
  expect_back_or_nothing(0, 10);
}

TEST(WordCache, RefusesWhatIsTooLong) {
  word_cache cache(0);
  const std::string longest(word_cache::max_word_bytes, 'x');
  cache.put(longest, ids_list(word_cache::max_ids, 7));
  ASSERT_TRUE(cache.find(longest));
  EXPECT_EQ(cache.find(longest)->size(), word_cache::max_ids);
  cache.put(longest + "x", ids_list{1});
  EXPECT_FALSE(cache.find(longest + "x"));
  cache.put("y", ids_list(word_cache::max_ids + 1, 7));
  EXPECT_FALSE(cache.find("y"));
}

TEST(WordCache, KeepsWordsWithoutIds) {
  word_cache cache(0);
  cache.put("nothing", {});
  ASSERT_TRUE(cache.find("nothing"));
  EXPECT_TRUE(cache.find("nothing")->empty());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
