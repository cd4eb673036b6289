// SPDX-License-Identifier: Apache-2.0
#include "regex/symbol_pattern.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "regex/parse_pattern.hpp"

namespace millrace::tokenizer::detail {
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
