// SPDX-License-Identifier: Apache-2.0
#include "split/certain_cut.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "pieces.hpp"
#include "split/splitters.hpp"
#include "support/encode_parts.hpp"
#include "support/seed.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// All patterns except those for BERT.
constexpr pattern patterns[] = {pattern::r50k,        pattern::cl100k,         pattern::llama3,
                                pattern::qwen2,       pattern::qwen35,         pattern::o200k,
                                pattern::tekken,      pattern::megatron_v1,    pattern::kimi,
                                pattern::deepseek_v3, pattern::starcoder,      pattern::digits_r50k,
                                pattern::seed_coder,  pattern::deepseek_coder, pattern::bloom};

// Returns true if splitting the two sides of a cut gives the same ends as splitting the whole text.
bool parts_give_the_whole(const word_splitter& splitter, std::string_view text, std::size_t at) {
  std::vector<std::size_t> ends = test::ends_of(splitter, text.substr(0, at));
  for (const std::size_t end : test::ends_of(splitter, text.substr(at))) ends.push_back(at + end);
  return ends == test::ends_of(splitter, text);
}

TEST(CertainCut, IsOneInRandomTexts) {
  test::odd_texts random(test::seed(11));
  std::size_t cuts = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random.next();
    for (std::size_t at = 1; at < text.size(); ++at) {
      if ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
      const neighbours around = neighbours_at(text, at);
      for (const pattern each : patterns) {
        if (!is_certain_cut(each, around.left, around.right)) continue;
        ++cuts;
        const auto splitter = make_splitter(each, instruction_set::portable);
        ASSERT_TRUE(parts_give_the_whole(*splitter, text, at))
            << testing::PrintToString(text) << " at " << at << ", pattern "
            << static_cast<int>(each);
      }
    }
  }
  EXPECT_GT(cuts, 10000U * std::size(patterns));
}

// Tests every code point before and after each of several other code points, in various contexts.
TEST(CertainCut, IsOneForEveryCodePoint) {
  std::mt19937 random(5);
  const std::vector<std::string> before = {"",  " ",  "'",  "'l", "A",  "a",
                                           "1", "12", "\n", "!",  "中", " '"};
  const std::vector<std::string> behind = {"",  "s",      "ll", " x", "\n", "1",
                                           " ", "\u0301", "!",  "中", "A"};
  const std::vector<std::uint32_t> others = {' ', '\n',   'a',    'Z',    '1',    ',',    '\'',
                                             '/', 0x4E2D, 0x3002, 0x3000, 0x30AB, 0x2019, 0xE9};
  std::vector<std::unique_ptr<const word_splitter>> splitters;
  for (const pattern each : patterns) {
    splitters.push_back(make_splitter(each, instruction_set::portable));
  }
  const auto expect_cut = [&](std::uint32_t left, std::uint32_t right) {
    std::string text = before[random() % before.size()];
    append_code_point(text, left);
    const std::size_t at = text.size();
    append_code_point(text, right);
    text += behind[random() % behind.size()];
    for (std::size_t i = 0; i < std::size(patterns); ++i) {
      if (!is_certain_cut(patterns[i], left, right)) continue;
      ASSERT_TRUE(parts_give_the_whole(*splitters[i], text, at))
          << testing::PrintToString(text) << ", pattern " << static_cast<int>(patterns[i]);
    }
  };
  for (std::uint32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    // Ideographs and syllables behave alike, so only some of them are tested.
    const bool alike = (c >= 0x3400 && c < 0x9FF0) || (c >= 0xAC00 && c < 0xD7A0) || c >= 0x17000;
    if (alike && c % 61 != 0) continue;
    for (const std::uint32_t other : others) {
      expect_cut(c, other);
      expect_cut(other, c);
    }
  }
}

TEST(CertainCut, IsWhereOrdinaryTextHasMany) {
  const auto is_cut_by = [](pattern each) {
    return [each](std::uint32_t left, std::uint32_t right) {
      return is_certain_cut(each, left, right);
    };
  };
  const auto llama3 = is_cut_by(pattern::llama3);
  EXPECT_TRUE(llama3('a', ' '));
  EXPECT_TRUE(llama3('a', '\n'));
  EXPECT_TRUE(llama3('.', ' '));
  EXPECT_TRUE(llama3('9', ','));
  EXPECT_TRUE(llama3('x', '9'));
  EXPECT_TRUE(llama3(0x4E2D, 0x3002));
  EXPECT_FALSE(llama3('a', '\''));
  EXPECT_FALSE(llama3(' ', 'a'));
  EXPECT_FALSE(llama3('.', '\n'));
  EXPECT_FALSE(llama3('a', 'b'));
  EXPECT_FALSE(llama3('a', 0x301));
  const auto bloom = is_cut_by(pattern::bloom);
  EXPECT_TRUE(bloom('a', ' '));
  EXPECT_TRUE(bloom('"', '.'));
  EXPECT_FALSE(bloom('x', '9'));
  EXPECT_FALSE(bloom(' ', 'a'));
  EXPECT_FALSE(bloom(' ', ' '));
  const auto coder = is_cut_by(pattern::deepseek_coder);
  EXPECT_TRUE(coder('a', ' '));
  EXPECT_TRUE(coder('1', '2'));
  EXPECT_TRUE(coder('.', '\n'));
  EXPECT_FALSE(coder('+', ' '));  // a space joins only words and punctuation
}

}  // namespace
}  // namespace millrace::tokenizer::detail
