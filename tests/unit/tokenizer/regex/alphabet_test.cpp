// SPDX-License-Identifier: Apache-2.0
#include "regex/alphabet.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regex/pattern_tree.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

code_point_set set_of(std::uint32_t first, std::uint32_t last) {
  code_point_set set;
  set.add(first, last);
  return set;
}

std::string translated(const alphabet& letters, std::string_view text) {
  std::string symbols = "what was there before";
  letters.translate(text, symbols);
  return symbols;
}

TEST(Alphabet, HasOneSymbolForCharactersThatAreInTheSameSets) {
  const alphabet letters(std::vector{set_of('a', 'z'), set_of('m', 0x300)});
  const std::string symbols = translated(letters, "alm~\u00E9\u0301\u4E00A");
  ASSERT_EQ(symbols.size(), 8U);
  EXPECT_EQ(symbols[0], symbols[1]);
  EXPECT_EQ(symbols[3], symbols[4]);
  EXPECT_EQ(symbols[5], symbols[6]);
  EXPECT_EQ(symbols[5], symbols[7]);
  EXPECT_EQ(letters.symbols_of(0).count(), 2U);
  EXPECT_EQ(letters.symbols_of(1).count(), 2U);
  EXPECT_EQ((letters.symbols_of(0) & letters.symbols_of(1)).count(), 1U);
}

TEST(Alphabet, AgreesWithItsSetsOnEveryCodePoint) {
  std::vector<code_point_set> sets{code_point_set(reference_set::word),
                                   code_point_set(reference_set::white_space), set_of('k', 'k'),
                                   set_of(0, 0x10FFFF), code_point_set()};
  sets.back().add_category("L");
  sets.emplace_back();
  const alphabet letters(sets);
  std::string text;
  for (std::uint32_t point = 0; point < code_point_set::limit; ++point) {
    append_code_point(text, point);
  }
  const std::string symbols = translated(letters, text);
  ASSERT_EQ(symbols.size(), code_point_set::limit);
  std::size_t wrong = 0;
  for (std::uint32_t point = 0; point < code_point_set::limit; ++point) {
    const auto symbol = static_cast<unsigned char>(symbols[point]);
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (sets[i].contains(point) != letters.symbols_of(i)[symbol]) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Alphabet, HasTwoHundredFiftySixSymbolsAtMost) {
  std::vector<code_point_set> sets;
  for (std::uint32_t point = 0; point < 255; ++point) sets.push_back(set_of(point, point));
  EXPECT_TRUE(alphabet(sets).symbols_of(254).any());
  sets.push_back(set_of(0x4E00, 0x4E00));
  EXPECT_THROW(alphabet{sets}, pattern_error);
}

TEST(Alphabet, OfNoSetsHasOneSymbol) {
  EXPECT_EQ(translated(alphabet({}), "a\u4E00\n"), std::string(3, '\0'));
}

}  // namespace

namespace {

std::string written(std::string_view pattern) {
  const pattern_tree tree = parse_pattern(pattern);
  return symbol_pattern(tree, alphabet(tree.sets));
}

// Symbols are numbered set by set: first the members of the first set, then those of the second,
// and so on.
TEST(SymbolPattern, WritesClassesAsBytes) {
  EXPECT_EQ(written("ab"), R"(\x01\x02)");
  EXPECT_EQ(written("[a-z]b"), R"([\x01-\x02]\x02)");
  EXPECT_EQ(written("[a&&b]"), R"([^\x00-\xff])");
}

TEST(SymbolPattern, WritesGroupsThatRememberNothing) {
  EXPECT_EQ(written("(a|bc)"), R"((?:\x01|\x02\x03))");
  EXPECT_EQ(written("(?>a|bc)"), R"((?>(?:\x01|\x02\x03)))");
  EXPECT_EQ(written("(?<!a|bc)a"), R"((?<!\x01|\x02\x03)\x01)");
}

TEST(SymbolPattern, WritesRepeats) {
  EXPECT_EQ(written("a*a+?a?+"), R"(\x01{0,}\x01{1,}?\x01{0,1}+)");
  EXPECT_EQ(written("(ab){2,3}"), R"((?:\x01\x02){2,3})");
  EXPECT_EQ(written("(ab){2}+"), R"((?:(?:\x01\x02){2,2}){1,})");
}

TEST(SymbolPattern, WritesPlacesByWhatLiesAround) {
  EXPECT_EQ(written("^"), R"((?:\A|(?<=\x01)(?!\z)))");
  EXPECT_EQ(written("$"), R"((?=\x01|\z))");
  EXPECT_EQ(written(R"(\Z)"), R"((?=\x01?\z))");
  EXPECT_EQ(written(R"(\b)"), R"((?:(?<!\x01)(?=\x01)|(?<=\x01)(?!\x01)))");
  EXPECT_EQ(written(R"(\B)"), R"((?:(?<!\x01)(?!\x01)|(?<=\x01)(?=\x01)))");
}

}  // namespace

}  // namespace millrace::tokenizer::detail
