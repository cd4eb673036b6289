// SPDX-License-Identifier: Apache-2.0
#include "bpe/word_cache.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

// A word at the end of a buffer is read another way than one with bytes behind it; both have to
// make the same key, or the word would be computed twice.
TEST(WordCache, MakesOneKeyWhateverFollowsTheWord) {
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t size = 1; size <= word_cache::max_word_bytes; ++size) {
    const std::vector<char> alone(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(word_cache::make_key(alone.data(), size, size),
              word_cache::make_key(text.data(), size, text.size()))
        << size;
  }
}

TEST(WordCache, KeepsWordsApartThatDifferInLengthOrZeros) {
  const std::string zeros(16, '\0');
  std::vector<word_cache::key> keys = {{}};  // the key of an empty place
  for (std::size_t size = 1; size <= word_cache::max_word_bytes; ++size) {
    keys.push_back(word_cache::make_key(zeros.data(), size, zeros.size()));
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(keys[i], keys[j]) << i << ' ' << j;
  }
}

TEST(WordCache, GivesBackWhatWasPut) {
  word_cache cache;
  const auto key = word_cache::make_key("word", 4, 4);
  EXPECT_NE(cache.at(key).word, key);
  const std::vector<std::int32_t> ids = {5, 6, 7};
  word_cache::put(cache.at(key), key, ids);
  const word_cache::entry& found = cache.at(key);
  EXPECT_EQ(found.word, key);
  EXPECT_EQ(std::vector<std::int32_t>(found.ids.begin(), found.ids.begin() + found.count), ids);
}

TEST(WordCache, IsEightMebibytes) {
  EXPECT_EQ(word_cache::size_bytes(), 8U << 20);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
