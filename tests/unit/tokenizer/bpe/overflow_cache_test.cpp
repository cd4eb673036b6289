// SPDX-License-Identifier: Apache-2.0
#include "bpe/overflow_cache.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

TEST(OverflowCache, ForgetsButNeverLies) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1} << 16, std::size_t{1} << 20}) {
    SCOPED_TRACE(bytes);
    overflow_cache cache(bytes);
    std::map<std::string, ids_list> put;
    std::mt19937 random(11);
    std::size_t known = 0;
    for (int i = 0; i < 20000; ++i) {
      std::string word(1 + random() % 40, ' ');
      for (char& c : word) c = static_cast<char>('a' + random() % 2);
      if (i % 5 != 0) word.resize(1 + random() % 6);
      const auto found = cache.find(word);
      if (found.data() != nullptr) {
        ++known;
        ASSERT_EQ(ids_list(found.begin(), found.end()), put.at(word));
      } else {
        ids_list ids(random() % 50);
        for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random());
        cache.put(word, ids);
        put[word] = ids;
      }
    }
    EXPECT_GT(known, 100U);
  }
}

TEST(OverflowCache, APlaceIsValidUntilItsIdsAreDropped) {
  overflow_cache cache(0);
  EXPECT_EQ(cache.ids_at({}).data(), nullptr);
  const ids_list first = {1, 2, 3};
  const auto at = cache.put("first", first);
  ASSERT_NE(cache.ids_at(at).data(), nullptr);
  EXPECT_EQ(ids_list(cache.ids_at(at).begin(), cache.ids_at(at).end()), first);
  EXPECT_EQ(cache.ids_at(cache.place_of("first")).data(), cache.ids_at(at).data());
  const ids_list many(100, 7);
  for (int i = 0; cache.ids_at(at).data() != nullptr; ++i) {
    ASSERT_LT(i, 100);
    cache.put("word " + std::to_string(i), many);
  }
  EXPECT_EQ(cache.find("first").data(), nullptr);
  EXPECT_EQ(cache.ids_at(cache.place_of("first")).data(), nullptr);
}

TEST(OverflowCache, StaysWithinItsMemory) {
  EXPECT_LE(overflow_cache(std::size_t{1} << 20).size_bytes(), std::size_t{1} << 20);
  EXPECT_LE(overflow_cache(std::size_t{16} << 20).size_bytes(), std::size_t{16} << 20);
}

TEST(OverflowCache, DoesNotKeepGiants) {
  overflow_cache cache(std::size_t{1} << 16);
  const ids_list one = {1};
  const std::string longest(overflow_cache::max_word_bytes, 'x');
  cache.put(longest, one);
  EXPECT_NE(cache.find(longest).data(), nullptr);
  cache.put(longest + 'x', one);
  EXPECT_EQ(cache.find(longest + 'x').data(), nullptr);
  const ids_list many(1 << 20, 7);
  cache.put("many", many);
  EXPECT_EQ(cache.find("many").data(), nullptr);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
