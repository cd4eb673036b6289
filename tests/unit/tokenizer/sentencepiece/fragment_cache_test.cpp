// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/fragment_cache.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::tokenizer::detail {
namespace {

using cache = fragment_cache<2, int>;

cache::key key_of(const std::string& text) {
  return cache::make_key(text.data(), text.size(), text.size());
}

TEST(FragmentCache, KeysAreTheSameHoweverMuchMayBeRead) {
  const std::string text = "0123456789abcdefghij";
  for (std::size_t size = 1; size <= cache::max_bytes; ++size) {
    EXPECT_EQ(cache::make_key(text.data(), size, text.size()),
              cache::make_key(text.data(), size, size));
  }
  EXPECT_NE(key_of("a"), key_of(std::string("a\0", 2)));
}

TEST(FragmentCache, FindsWhatItWasGiven) {
  cache known(16);
  const auto key = key_of("word");
  EXPECT_EQ(known.find(known.home(key), key), nullptr);
  known.put(known.home(key), key, 7);
  ASSERT_NE(known.find(known.home(key), key), nullptr);
  EXPECT_EQ(*known.find(known.home(key), key), 7);
}

// One bucket holds two: the one that is asked for stays, whatever else comes by once.
TEST(FragmentCache, KeepsWhatComesOften) {
  cache known(1);
  const auto often = key_of("often");
  known.put(0, often, 1);
  ASSERT_NE(known.find(0, often), nullptr);
  for (int i = 0; i < 10; ++i) known.put(0, key_of("once" + std::to_string(i)), 2);
  const auto* found = known.find(0, often);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(*found, 1);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
