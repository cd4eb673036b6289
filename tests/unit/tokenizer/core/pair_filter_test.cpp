// SPDX-License-Identifier: Apache-2.0
#include "core/pair_filter.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::size_t naive_next(const std::vector<std::string_view>& words, std::string_view text,
                       std::size_t from) {
  for (; from < text.size(); ++from) {
    for (const std::string_view word : words) {
      const std::string_view start = word.substr(0, 2);
      if (text.substr(from, start.size()) == start) return from;
    }
  }
  return text.size();
}

TEST(PairFilter, WithoutWordsFindsNothing) {
  EXPECT_EQ(pair_filter().next("any text at all", 0), 15U);
}

// Up to three different pairs are compared one by one, more of them by tables.
TEST(PairFilter, FindsEachPairWhereverItLies) {
  const std::vector<std::string_view> pairs = {"<|", "</", "<t", "[I", "a}"};
  for (std::size_t count = 1; count <= pairs.size(); ++count) {
    std::vector<std::string_view> words;
    for (std::size_t i = 0; i < 2 * count; ++i) words.push_back(pairs[i % count]);
    const pair_filter filter(words);
    for (std::size_t before = 0; before < 200; ++before) {
      const std::string text = std::string(before, '<') + "|<";
      EXPECT_EQ(filter.next(text, 0), before == 0 ? text.size() : before - 1);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        const std::string here = std::string(before, '[') + std::string(pairs[i]) + "[[";
        EXPECT_EQ(filter.next(here, 0), i < count ? before : here.size()) << here;
      }
    }
  }
}

// Covers blocks of 32 bytes, the remaining bytes after them, and words of one byte at the very end.
TEST(PairFilter, FindsTheFirstPlaceWhereverItLies) {
  const pair_filter filter({"<|x|>", "!"});
  for (std::size_t before = 0; before < 100; ++before) {
    const std::string text(before, '<');
    EXPECT_EQ(filter.next(text, 0), before) << "a lone first byte is not enough";
    EXPECT_EQ(filter.next(text + "<|", 0), before);
    EXPECT_EQ(filter.next(text + "!", 0), before);
  }
}

TEST(PairFilter, AgreesWithALoop) {
  std::mt19937_64 random(test::seed(1));
  for (int round = 0; round < 3000; ++round) {
    const auto pick = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
    const std::size_t letters = 2 + pick(250);
    const auto text_of = [&](std::size_t size) {
      std::string text;
      while (text.size() < size) text += static_cast<char>(pick(letters));
      return text;
    };
    std::vector<std::string> contents;
    for (std::size_t i = 0; i < 1 + pick(20); ++i) contents.push_back(text_of(1 + pick(3)));
    const std::vector<std::string_view> words(contents.begin(), contents.end());
    const pair_filter filter(words);
    const std::string text = text_of(pick(120));
    for (std::size_t from = 0; from <= text.size(); ++from) {
      ASSERT_EQ(filter.next(text, from), naive_next(words, text, from)) << from;
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
