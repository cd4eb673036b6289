// SPDX-License-Identifier: Apache-2.0
#include "split/o200k_matcher.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::expect_pieces;

TEST(O200kMatcher, CutsWordsWhereTheCaseChanges) {
  expect_pieces(pattern::o200k,
                {
                    {"fooBarBAZ", {"foo", "Bar", "BAZ"}},
                    {"HTTPServer XMLa", {"HTTPServer", " XMLa"}},
                    {"(fooBar", {"(foo", "Bar"}},
                    {"\u01C5a\u01C5", {"\u01C5a", "\u01C5"}},  // title case counts as upper
                });
}

// A caseless character counts as both upper and lower case, and joins the characters before it. If
// a run of capitals follows it, the word gives back these capitals and ends after the caseless
// character.
TEST(O200kMatcher, PutsCaselessLettersWithEitherCase) {
  expect_pieces(pattern::o200k,
                {
                    {"\u4E2DAB", {"\u4E2D", "AB"}},
                    {"\u4E2DABc", {"\u4E2DABc"}},
                    {"A\u4E2DB\u4E2DCD", {"A\u4E2DB\u4E2D", "CD"}},
                    {"a\u4E2DB", {"a\u4E2D", "B"}},
                    {"a\u0301B", {"a\u0301", "B"}},
                    {"\u0301ABC", {"\u0301", "ABC"}},  // the mark is the word, not a prefix
                    {"\u0301abc", {"\u0301abc"}},
                    {"!!\u0301a", {"!!\u0301", "a"}},  // here it is punctuation
                });
}

TEST(O200kMatcher, KeepsAContractionWithItsWord) {
  expect_pieces(pattern::o200k, {
                                    {"don't", {"don't"}},
                                    {"DON'Tx", {"DON'T", "x"}},
                                    {"we'll've", {"we'll", "'ve"}},      // one contraction per word
                                    {"we'll've'd", {"we'll", "'ve'd"}},  // 've'd is a word itself
                                    {"'s's", {"'s's"}},
                                    {"a'\u017Fb", {"a'\u017F", "b"}},
                                    {"1's", {"1", "'s"}},
                                    {"\u4E2DAB's", {"\u4E2D", "AB's"}},
                                    {"x's\u4E2DAb", {"x's", "\u4E2DAb"}},
                                });
}

TEST(O200kMatcher, TakesSlashesIntoTheTailOfPunctuation) {
  expect_pieces(pattern::o200k, {
                                    {"a/b", {"a", "/b"}},
                                    {"!\n/x", {"!\n/", "x"}},
                                    {"!\n/#x", {"!\n/", "#x"}},
                                    {"\n/x", {"\n", "/x"}},
                                    {"//\n//\nx", {"//\n//\n", "x"}},
                                    {" /\n/", {" /\n/"}},
                                });
}

TEST(O200kMatcher, DiffersByItsRules) {
  expect_pieces(pattern::tekken,
                {{"don't", {"don", "'t"}}, {"123", {"1", "2", "3"}}, {"!\n/x", {"!\n/", "x"}}});
  expect_pieces(pattern::kimi, {{"a\u4E2DB", {"a", "\u4E2D", "B"}},
                                {"\u4E2D\u3005\u3007x's", {"\u4E2D\u3005\u3007", "x's"}},
                                {"1\u3007", {"1\u3007"}},  // a number, because a number precedes it
                                {"\u4E2D's't", {"\u4E2D", "'s't"}},
                                {"\u3042\u4E2D", {"\u3042", "\u4E2D"}},
                                {" \u4E2D", {" ", "\u4E2D"}},
                                {"!\n/x", {"!\n", "/x"}}});
}

}  // namespace
}  // namespace millrace::tokenizer::detail
