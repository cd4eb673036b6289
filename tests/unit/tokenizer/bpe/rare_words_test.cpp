// SPDX-License-Identifier: Apache-2.0
#include "bpe/rare_words.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

TEST(RareWords, ForgetButNeverLie) {
  for (const std::size_t memory : {std::size_t{0}, std::size_t{1} << 16, std::size_t{1} << 20}) {
    SCOPED_TRACE(memory);
    rare_words words(memory);
    std::map<std::string, ids_list> put;
    std::mt19937 random(11);
    std::size_t known = 0;
    for (int i = 0; i < 20000; ++i) {
      std::string word(1 + random() % 40, ' ');
      for (char& c : word) c = static_cast<char>('a' + random() % 2);
      if (i % 5 != 0) word.resize(1 + random() % 6);
      const auto found = words.find(word);
      if (found.data() != nullptr) {
        ++known;
        ASSERT_EQ(ids_list(found.begin(), found.end()), put.at(word));
      } else {
        ids_list ids(random() % 50);
        for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random());
        words.put(word, ids);
        put[word] = ids;
      }
    }
    EXPECT_GT(known, 100U);
  }
}

TEST(RareWords, StayWithinTheirMemory) {
  EXPECT_LE(rare_words(std::size_t{1} << 20).size_bytes(), std::size_t{1} << 20);
  EXPECT_LE(rare_words(std::size_t{16} << 20).size_bytes(), std::size_t{16} << 20);
}

TEST(RareWords, DoNotKeepGiants) {
  rare_words words(std::size_t{1} << 16);
  const ids_list one = {1};
  const std::string longest(rare_words::max_word_bytes, 'x');
  words.put(longest, one);
  EXPECT_NE(words.find(longest).data(), nullptr);
  words.put(longest + 'x', one);
  EXPECT_EQ(words.find(longest + 'x').data(), nullptr);
  const ids_list many(1 << 20, 7);
  words.put("many", many);
  EXPECT_EQ(words.find("many").data(), nullptr);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
