// SPDX-License-Identifier: Apache-2.0
#include "unicode/grapheme_class.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// The counts are those of Unicode 17.0, which has 26 more marks and one more conjunct linker than
// 16.0.
TEST(GraphemeClass, CountsTheCodePointsOfVersion17) {
  std::array<int, 16> kinds{};
  int pictographs = 0;
  int consonants = 0;
  int linkers = 0;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const grapheme_class found = grapheme_class_of(point);
    ++kinds[static_cast<std::size_t>(found.kind())];
    pictographs += found.pictograph();
    consonants += found.consonant();
    linkers += found.linker();
  }
  const auto count = [&](grapheme_kind kind) { return kinds[static_cast<std::size_t>(kind)]; };
  EXPECT_EQ(count(grapheme_kind::control), 3893);
  EXPECT_EQ(count(grapheme_kind::extend), 2237);
  EXPECT_EQ(count(grapheme_kind::spacing_mark), 381);
  EXPECT_EQ(count(grapheme_kind::prepend), 27);
  EXPECT_EQ(count(grapheme_kind::regional), 26);
  EXPECT_EQ(count(grapheme_kind::hangul_l), 125);
  EXPECT_EQ(count(grapheme_kind::hangul_v), 100);
  EXPECT_EQ(count(grapheme_kind::hangul_t), 137);
  EXPECT_EQ(count(grapheme_kind::hangul_lv), 399);
  EXPECT_EQ(count(grapheme_kind::hangul_lvt), 10773);
  EXPECT_EQ(pictographs, 2848);
  EXPECT_EQ(consonants, 911);
  EXPECT_EQ(linkers, 20);
}

TEST(GraphemeClass, KnowsNothingOfWhatIsNoCodePoint) {
  EXPECT_EQ(grapheme_class_of(0x110000).bits, 0);
  EXPECT_EQ(grapheme_class_of(0xFFFFFFFF).bits, 0);
}

// Returns `text` with a bar before each cluster except the first.
std::string clusters(std::string_view text) {
  std::string out;
  grapheme_boundaries boundaries;
  for (std::size_t at = 0; at < text.size();) {
    const code_point point = code_point_at(text, at);
    const bool begins = boundaries.begins(grapheme_class_of(point.value));
    EXPECT_TRUE(begins || at != 0);
    if (begins && at != 0) out += '|';
    out += text.substr(at, point.size_bytes);
    at += point.size_bytes;
  }
  return out;
}

TEST(GraphemeBoundaries, KeepMarksWithWhatTheyStandOn) {
  EXPECT_EQ(clusters("ab"), "a|b");
  EXPECT_EQ(clusters("e\u0301\u0327x"), "e\u0301\u0327|x");
  EXPECT_EQ(clusters("\u0301\u0301"), "\u0301\u0301");
  EXPECT_EQ(clusters("\u0E01\u0E33a\u200D"), "\u0E01\u0E33|a\u200D");
  EXPECT_EQ(clusters("\u0600"
                     "1a"),
            "\u0600"
            "1|a");
}

TEST(GraphemeBoundaries, SeparateControls) {
  EXPECT_EQ(clusters("a\r\n\n\r"), "a|\r\n|\n|\r");
  EXPECT_EQ(clusters("\n\u0301"), "\n|\u0301");
  EXPECT_EQ(clusters("\u0600\n"), "\u0600|\n");
  EXPECT_EQ(clusters("a\u200B\u0301"), "a|\u200B|\u0301");
}

TEST(GraphemeBoundaries, KeepHangulSyllables) {
  EXPECT_EQ(clusters("\u1100\u1100\u1161\u1161\u11A8\u11A8"),
            "\u1100\u1100\u1161\u1161\u11A8\u11A8");
  EXPECT_EQ(clusters("\u1100\uAC00\u11A8\uAC01\u11A8"), "\u1100\uAC00\u11A8|\uAC01\u11A8");
  EXPECT_EQ(clusters("\u1100\u11A8\u1161\u1100\uAC01\u1161"),
            "\u1100|\u11A8|\u1161|\u1100\uAC01|\u1161");
}

TEST(GraphemeBoundaries, KeepPictographsThatAreJoined) {
  EXPECT_EQ(clusters("\u00A9\u200D\u00A9"), "\u00A9\u200D\u00A9");
  EXPECT_EQ(clusters("\u00A9\u0301\u200D\u00A9\u200D\u263A"),
            "\u00A9\u0301\u200D\u00A9\u200D\u263A");
  EXPECT_EQ(clusters("\u00A9\u200D\u200D\u00A9"), "\u00A9\u200D\u200D|\u00A9");
  EXPECT_EQ(clusters("\u00A9\u0903\u200D\u00A9"), "\u00A9\u0903\u200D|\u00A9");
  EXPECT_EQ(clusters("a\u200D\u00A9"), "a\u200D|\u00A9");
}

TEST(GraphemeBoundaries, KeepTheTwoHalvesOfAFlag) {
  EXPECT_EQ(clusters("\U0001F1E6\U0001F1FA\U0001F1E6\U0001F1FA\U0001F1E6"),
            "\U0001F1E6\U0001F1FA|\U0001F1E6\U0001F1FA|\U0001F1E6");
  EXPECT_EQ(clusters("\U0001F1E6\u0301\U0001F1FA"), "\U0001F1E6\u0301|\U0001F1FA");
}

TEST(GraphemeBoundaries, KeepIndicConjuncts) {
  EXPECT_EQ(clusters("\u0915\u094D\u0937"), "\u0915\u094D\u0937");
  EXPECT_EQ(clusters("\u0915\u093C\u094D\u200D\u0937"), "\u0915\u093C\u094D\u200D\u0937");
  EXPECT_EQ(clusters("\u0915\u093C\u0937"), "\u0915\u093C|\u0937");
  EXPECT_EQ(clusters("\u0915\u094D\u200C\u0937"), "\u0915\u094D\u200C|\u0937");
  EXPECT_EQ(clusters("a\u094D\u0937"), "a\u094D|\u0937");
  EXPECT_EQ(clusters("\u0C95\u0CCD\u0C95"), "\u0C95\u0CCD|\u0C95");  // not in Kannada
}

}  // namespace
}  // namespace millrace::tokenizer::detail
