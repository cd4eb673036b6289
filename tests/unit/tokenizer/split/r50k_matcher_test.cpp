// SPDX-License-Identifier: Apache-2.0
#include "split/r50k_matcher.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/seed.hpp"
#include "unicode/code_point_set.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"
#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::strings;

strings split(std::string_view text) {
  static const auto splitter = make_splitter(pattern::r50k);
  return test::pieces(*splitter, text);
}

TEST(R50kMatcher, FollowsThePatternCaseByCase) {
  const std::vector<std::pair<std::string, strings>> cases = {
      {"", {}},
      {"Hello world", {"Hello", " world"}},
      {"it's", {"it", "'s"}},
      {"'sad", {"'s", "ad"}},      // a contraction ends in the middle of a word
      {"IT'S", {"IT", "'", "S"}},  // lower case only
      {"we'll've", {"we", "'ll", "'ve"}},
      {"'r 'l", {"'", "r", " '", "l"}},  // half a contraction is not one
      {" 's", {" '", "s"}},              // the apostrophe belongs to the space
      {"!'s", {"!'", "s"}},              // the apostrophe belongs to the punctuation
      {"a1b2", {"a", "1", "b", "2"}},
      {" 12 ab", {" 12", " ab"}},
      {"a  b", {"a", " ", " b"}},        // the last space belongs to the word
      {"a \tb", {"a", " ", "\t", "b"}},  // only U+0020 belongs to the word
      {"a \n b", {"a", " \n", " b"}},
      {"a  ", {"a", "  "}},  // at the end, a run stays whole
      {"a \n", {"a", " \n"}},
      {" ", {" "}},
      {"\u00A0a", {"\u00A0", "a"}},
      {"a\u3000\u3000b", {"a", "\u3000", "\u3000", "b"}},
      {"a\u200Bb", {"a", "\u200B", "b"}},  // the zero width space counts as punctuation
      {"e\u0301t", {"e", "\u0301", "t"}},  // marks count as punctuation
      {"\u65E5\u672C 2024", {"\u65E5\u672C", " 2024"}},
      {" \u00BD\u2167!", {" \u00BD\u2167", "!"}},
  };
  for (const auto& [text, parts] : cases) EXPECT_EQ(split(text), parts) << text;
}

// Matches the pattern as a backtracking engine would: one character at a time, without merging
// cases.
class naive_pattern {
 public:
  explicit naive_pattern(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const code_point point = code_point_at(text, at);
      points_.push_back(point.value);
      texts_.emplace_back(text.substr(at, point.size_bytes));
      at += point.size_bytes;
    }
  }

  strings split() const {
    strings parts;
    for (std::size_t at = 0; at < points_.size();) {
      const std::size_t size = match(at);
      std::string part;
      for (std::size_t i = at; i < at + size; ++i) part += texts_[i];
      parts.push_back(part);
      at += size;
    }
    return parts;
  }

 private:
  bool is(std::size_t at, char_class kind) const {
    return at < points_.size() && class_of(points_[at]) == kind;
  }
  bool literal(std::size_t at, std::u32string_view word) const {
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (at + i >= points_.size() || points_[at + i] != word[i]) return false;
    }
    return true;
  }
  std::size_t run(std::size_t at, char_class kind) const {
    std::size_t size = 0;
    while (is(at + size, kind)) ++size;
    return size;
  }

  std::size_t match(std::size_t at) const {
    for (const std::u32string_view word : {U"'s", U"'t", U"'re", U"'ve", U"'m", U"'ll", U"'d"}) {
      if (literal(at, word)) return word.size();
    }
    for (const auto kind : {char_class::letter, char_class::number, char_class::other}) {
      for (const std::size_t space : {std::size_t{1}, std::size_t{0}}) {  // " ?" is greedy
        if (space == 1 && points_[at] != ' ') continue;
        if (const std::size_t size = run(at + space, kind)) return space + size;
      }
    }
    const std::size_t spaces = run(at, char_class::space);
    for (std::size_t size = spaces; size > 0; --size) {  // \s+(?!\S) gives back spaces one by one
      const bool followed = at + size < points_.size() && !is(at + size, char_class::space);
      if (!followed) return size;
    }
    return spaces;
  }

  std::vector<std::uint32_t> points_;
  strings texts_;
};

TEST(R50kMatcher, AgreesWithTheNaivePatternOnRandomTexts) {
  const strings alphabet = {" ",
                            " ",
                            " ",
                            "\n",
                            "\t",
                            "\u00A0",
                            "\u3000",
                            "\u2028",
                            "\x1C",
                            "'",
                            "'",
                            "'s",
                            "'ll",
                            "'S",
                            "r",
                            "e",
                            "v",
                            "l",
                            "s",
                            "t",
                            "m",
                            "d",
                            "A",
                            "\u00E9",
                            "\u4E2D",
                            "\u01C5",
                            "\u02B0",
                            "\u0301",
                            "1",
                            "\u00B2",
                            "\u0665",
                            "\u2167",
                            "!",
                            "-",
                            "\u20AC",
                            "\u200B",
                            "\u0378",
                            "\U0001F600",
                            "\U00020000",
                            "\U00010D40",
                            std::string(1, '\0')};
  std::mt19937_64 random(test::seed(50));
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (auto left = random() % 14; left > 0; --left) text += alphabet[random() % alphabet.size()];
    ASSERT_EQ(split(text), naive_pattern(text).split()) << testing::PrintToString(text);
  }
}

// The pattern sees only the text between two numbers. So white space before a number is at the end
// of such a text, and is one pretoken.
TEST(R50kMatcher, CutsNumbersOutFirstForStarCoder) {
  const auto splitter = make_splitter(pattern::starcoder);
  const std::vector<std::pair<std::string, strings>> cases = {
      {"a12b", {"a", "1", "2", "b"}},
      {" 12", {" ", "1", "2"}},
      {"a   1", {"a", "   ", "1"}},
      {"a   b", {"a", "  ", " b"}},
      {"x= 3.5", {"x", "=", " ", "3", ".", "5"}},
      {"\u00BD\u2167'll", {"\u00BD", "\u2167", "'ll"}},
  };
  for (const auto& [text, parts] : cases) EXPECT_EQ(test::pieces(*splitter, text), parts) << text;
}

// Every character that matches \p{N} in the pattern is also a number for Digits. So only the other
// alternatives of the pattern match text between numbers.
TEST(R50kMatcher, CutsOutAllThatDigitsDoes) {
  const code_point_set digits(reference_set::numeric);
  const auto splitter = make_splitter(pattern::digits_r50k);
  std::size_t more = 0;
  for (std::uint32_t point = 0; point < code_point_set::limit; ++point) {
    const bool number = class_of(point) == char_class::number;
    ASSERT_TRUE(!number || digits.contains(point)) << point;
    if (!digits.contains(point)) continue;
    std::string text;
    append_code_point(text, point);
    EXPECT_EQ(test::pieces(*splitter, "a  " + text + text), (strings{"a", "  ", text, text}));
    more += number ? 0 : 1;
  }
  EXPECT_GT(more, 0U) << "the two families could be one";
}

}  // namespace
}  // namespace millrace::tokenizer::detail
