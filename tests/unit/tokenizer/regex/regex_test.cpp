// SPDX-License-Identifier: Apache-2.0
#include "regex/regex.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/interfaces.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Returns the pieces of `text` after a Split that isolates the matches of `pattern`. `how` selects
// the engine.
std::vector<std::string> cuts_by(pcre2_pattern::engine how, std::string_view pattern,
                                 std::string_view text) {
  const regex compiled(pattern, how);
  regex_memory memory;
  regex_search search(compiled, text, memory);
  std::vector<std::string> found;
  std::size_t covered = 0;
  const auto add = [&](std::size_t begin, std::size_t end) {
    if (begin != end) found.emplace_back(text.substr(begin, end - begin));
    covered = end;
  };
  while (const auto match = search.next()) {
    add(covered, match->begin);
    add(match->begin, match->end);
  }
  add(covered, text.size());
  return found;
}

std::vector<std::string> cuts(std::string_view pattern, std::string_view text) {
  const auto found = cuts_by(pcre2_pattern::engine::fastest, pattern, text);
  EXPECT_EQ(found, cuts_by(pcre2_pattern::engine::interpreter, pattern, text));
  return found;
}

std::string complaint(std::string_view pattern) {
  try {
    (void)regex(pattern);
  } catch (const pattern_error& e) {
    return e.what();
  }
  return "accepted";
}

class Regex : public testing::Test {
 protected:
  void SetUp() override {
    if (pcre2_version().empty()) GTEST_SKIP() << "this build is without PCRE2";
  }
};

// GPT-2's pattern, which also has a handwritten splitter.
TEST_F(Regex, CutsByThePatternOfGpt2) {
  constexpr std::string_view pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  EXPECT_THAT(cuts(pattern, "I'll  pay \u20AC10!! \u4E2D\n\n"),
              ElementsAre("I", "'ll", " ", " pay", " \u20AC", "10", "!!", " \u4E2D", "\n\n"));
}

TEST_F(Regex, KeepsWhatLiesBetweenMatches) {
  EXPECT_THAT(cuts(R"(\d+)", "a12b"), ElementsAre("a", "12", "b"));
}

TEST_F(Regex, CutsAtEmptyMatchesToo) {
  EXPECT_THAT(cuts(R"((?=\d))", "a1b2"), ElementsAre("a", "1b", "2"));
  EXPECT_THAT(cuts("x*", "axxb"), ElementsAre("a", "xx", "b"));
  EXPECT_THAT(cuts("", "a\u00E9b"), ElementsAre("a", "\u00E9", "b"));
}

TEST_F(Regex, TakesCasesOfKAndSUnderI) {
  EXPECT_THAT(cuts("(?i:'s|k)", "'\u017FK\u212A"), ElementsAre("'\u017F", "K", "\u212A"));
}

TEST_F(Regex, LimitsCaseToItsGroup) {
  EXPECT_THAT(cuts("a(?i)b|c", "aBCaC"), ElementsAre("aB", "C", "aC"));
}

TEST_F(Regex, CombinesClasses) {
  EXPECT_THAT(cuts(R"([\w&&[^\d_]]+)", "ab_1"), ElementsAre("ab", "_1"));
  EXPECT_THAT(cuts("[]a-c[x]-]+", "]-bxd"), ElementsAre("]-bx", "d"));
  EXPECT_THAT(cuts("[[:^alpha:]]+", "a1-b"), ElementsAre("a", "1-", "b"));
}

// Six characters match \w outside brackets but not inside.
TEST_F(Regex, HasTwoKindsOfWordCharacters) {
  EXPECT_THAT(cuts(R"(\w+)", "x\u00B2"), ElementsAre("x\u00B2"));
  EXPECT_THAT(cuts(R"([\w]+)", "x\u00B2"), ElementsAre("x", "\u00B2"));
}

TEST_F(Regex, RepeatsGreedilyLazilyAndForGood) {
  EXPECT_THAT(cuts("a+ab", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(cuts("a+?", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(cuts("a++ab", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(cuts(R"(\d{1,3}+)", "1234"), ElementsAre("1234"));
  EXPECT_THAT(cuts(R"(\d{1,3})", "1234"), ElementsAre("123", "4"));
  EXPECT_THAT(cuts("(?:a|b*)*c", "abbac"), ElementsAre("abbac"));
}

// Both texts must be split correctly. With its default optimizations, PCRE2 10.42 splits both
// wrongly.
TEST_F(Regex, FindsWhatOptimizationsMiss) {
  EXPECT_THAT(cuts("(?>[ab]+?[^a]){2}", "ab-ab"), ElementsAre("a", "b-ab"));
  EXPECT_THAT(cuts("[^x]?(?:x(?:ac)?)?+[^y]{2,}", "aby"), ElementsAre("ab", "y"));
}

TEST_F(Regex, LooksAheadAndBehind) {
  EXPECT_THAT(cuts(R"((?<=\s|ab)x)", "x xabx"), ElementsAre("x ", "x", "ab", "x"));
  EXPECT_THAT(cuts(R"((?<!\S)a)", "a ba a"), ElementsAre("a", " ba ", "a"));
}

TEST_F(Regex, KnowsEndsOfLines) {
  EXPECT_THAT(cuts("^a|b$", "ab\nab"), ElementsAre("a", "b", "\n", "a", "b"));
  EXPECT_THAT(cuts(R"(\Aa|b\Z)", "ab\nab\n"), ElementsAre("a", "b\na", "b", "\n"));
}

TEST_F(Regex, GivesUpOnAnExponentialSearchWithASentence) {
  const std::string text = "b" + std::string(300, 'a');
  for (const auto how : {pcre2_pattern::engine::fastest, pcre2_pattern::engine::interpreter}) {
    const auto search = [&] { (void)cuts_by(how, "b|(?:a?a)+c", text + "d"); };
    EXPECT_THAT(search, ThrowsMessage<unencodable_text>(
                            "the regular expression 'b|(?:a?a)+c' gives up at byte 1 of a piece "
                            "of 302: there are too many ways to match it"));
  }
}

// The engine remembers a choice for each character. For this text, the choices take more than the
// engine's initial memory.
TEST_F(Regex, TakesMebibytesInOneMatch) {
  const std::string text(std::size_t{2} << 20, 'a');
  const auto fastest = pcre2_pattern::engine::fastest;
  EXPECT_EQ(cuts_by(fastest, "(?:aa|b)+", text).size(), 1U);
  EXPECT_EQ(cuts_by(fastest, "a+b|a+", text).size(), 1U);
  EXPECT_EQ(cuts("(?:aa|b)+", text.substr(text.size() - (std::size_t{200} << 10))).size(), 1U);
}

TEST_F(Regex, GivesUpWithASentenceWhereMemoryEnds) {
  const std::string text(std::size_t{24} << 20, 'a');
  EXPECT_THAT([&] { (void)cuts_by(pcre2_pattern::engine::fastest, "(?:aa|a|b)+", text); },
              ThrowsMessage<unencodable_text>(HasSubstr("takes more than 256 MiB of memory")));
}

TEST_F(Regex, StaysInsideATextThatIsNoUtf8) {
  for (const std::string_view text : {"\xE4\xB8", "a\xF7\xBF\xBF\xBF", "\x80\xFF", "a\xC3"}) {
    const std::vector<char> exact(text.begin(), text.end());
    std::string all;
    for (const std::string& part : cuts(R"(\w+|\b.)", {exact.data(), exact.size()})) all += part;
    EXPECT_EQ(all, text);
  }
}

TEST_F(Regex, RefusesByName) {
  EXPECT_THAT(complaint(R"((a)\1)"), HasSubstr("the escape \\1 is not supported (at byte 4"));
  EXPECT_THAT(complaint("(?<n>a)"), HasSubstr("this kind of group"));
  EXPECT_THAT(complaint("(?i:stra\u00DFe)"), HasSubstr("under (?i)"));
  EXPECT_THAT(complaint("(?i:ss)"), HasSubstr("ss, st, ff"));
  EXPECT_THAT(complaint(R"((?i:[\p{L}]))"), HasSubstr("under (?i)"));
  EXPECT_THAT(complaint("a**"), HasSubstr("a quantifier after a quantifier"));
  EXPECT_THAT(complaint("(?<=a+)b"), HasSubstr("look-behind of variable length"));
  EXPECT_THAT(complaint("(?:a?){2}"), HasSubstr("what may match nothing"));
  EXPECT_THAT(complaint(R"(\p{Klingon})"), HasSubstr("'Klingon'"));
  EXPECT_THAT(complaint("[a"), HasSubstr("a class without an end"));
  EXPECT_THAT(complaint(R"([^[^\x{0}-\x{80}]])"), HasSubstr("a range from U+0000"));
  EXPECT_THAT(complaint("a)"), HasSubstr("without its '('"));
  EXPECT_THAT(complaint("*"), HasSubstr("expected something to repeat"));
  EXPECT_THAT(complaint("\\"), HasSubstr("a backslash at the end"));
  EXPECT_THAT(complaint("a{2001}"), HasSubstr("bounds of a repeat"));
  EXPECT_THAT(complaint(std::string(200, '(')), HasSubstr("too deeply"));
  EXPECT_THAT(complaint("(?:[a-c]x){1,1000}{1,2}"), HasSubstr("a quantifier after a quantifier"));
  EXPECT_THAT(complaint("(?:(?:[ac][bd]){1000}){1000}"),
              HasSubstr("PCRE2 rejected the regular expression: regular expression is too large"));
  std::string many;
  for (char32_t point = 0x4E00; point < 0x4E00 + 300; ++point) {
    append_code_point(many, point);
    many += "+";
  }
  EXPECT_THAT(complaint(many), HasSubstr("more than 256 distinct sets"));
}

TEST_F(Regex, ReadsAnyBytesAsAPatternOrRefusesThem) {
  constexpr std::string_view alphabet = "a[]()?*+{},1:^-&\\pPLdwsx|<=!>i.$";
  std::uint32_t state = 1;
  std::size_t accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string pattern;
    for (int k = 0; k < 8; ++k) {
      state = state * 1664525 + 1013904223;
      pattern += alphabet[(state >> 16) % alphabet.size()];
    }
    if (complaint(pattern) == "accepted") ++accepted;
  }
  EXPECT_GT(accepted, 25U);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
