// SPDX-License-Identifier: Apache-2.0
#include "split/cl100k_matcher.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::expect_pieces;

TEST(Cl100kMatcher, FollowsThePatternCaseByCase) {
  expect_pieces(pattern::llama3,
                {
                    {"", {}},
                    {"Hello world", {"Hello", " world"}},
                    {"it's IT'S", {"it", "'s", " IT", "'S"}},
                    {"'sad", {"'s", "ad"}},
                    {"'LLama", {"'LL", "ama"}},
                    {"we'll've", {"we", "'ll", "'ve"}},
                    {"x'\u017Fy", {"x", "'\u017F", "y"}},  // long s folds to s
                    {"x'\u212Ay", {"x", "'\u212Ay"}},      // the Kelvin sign is not a contraction
                    {" 's", {" '", "s"}},                  // the apostrophe belongs to the space
                    {"!'s", {"!'", "s"}},  // the apostrophe belongs to the punctuation
                    {"'x", {"'x"}},        // a prefix, not a contraction
                    {"(a !a", {"(a", " !", "a"}},
                    {"!!a", {"!!", "a"}},
                    {"\ta\t\ta", {"\ta", "\t", "\ta"}},
                    {"\u00A0a", {"\u00A0a"}},
                    {"\na", {"\n", "a"}},  // CR and LF are not prefixes
                    {"1234567", {"123", "456", "7"}},
                    {" 12", {" ", "12"}},
                    {"a  1", {"a", " ", " ", "1"}},
                    {"\u00B2\u2167\u0663\u0664", {"\u00B2\u2167\u0663", "\u0664"}},
                    {"e\u0301t", {"e", "\u0301t"}},  // a mark is a prefix
                });
}

TEST(Cl100kMatcher, CutsWhiteSpaceBehindItsLastNewline) {
  expect_pieces(pattern::llama3,
                {
                    {"a \n b", {"a", " \n", " b"}},
                    {"a\n\n\t\tb", {"a", "\n\n", "\t", "\tb"}},
                    {"a\n \n  b", {"a", "\n \n", " ", " b"}},
                    {"a!\n\n b", {"a", "!\n\n", " b"}},
                    {"!\n \nb", {"!\n", " \n", "b"}},
                    {"a \r\n", {"a", " \r\n"}},
                    {"a\u2028\u2028b", {"a", "\u2028", "\u2028b"}},  // no newline here
                    {"a  \u0085b", {"a", "  ", "\u0085b"}},
                    {"a   ", {"a", "   "}},
                });
}

// Only tiktoken's pattern for GPT-4 has `\s++$`, which matches only at the end of a text.
TEST(Cl100kMatcher, TellsTheTwoEndsOfATextApart) {
  expect_pieces(pattern::cl100k,
                {{"\n ", {"\n "}}, {"a!\n \n ", {"a", "!\n", " \n "}}, {"\n a", {"\n", " a"}}});
  expect_pieces(pattern::llama3, {{"\n ", {"\n", " "}}, {"a!\n \n ", {"a", "!\n", " \n", " "}}});
}

TEST(Cl100kMatcher, DiffersByItsRules) {
  expect_pieces(pattern::qwen2, {{"12a", {"1", "2", "a"}}, {"e\u0301t's", {"e", "\u0301t", "'s"}}});
  expect_pieces(pattern::qwen35, {{"12a", {"1", "2", "a"}},
                                  {"e\u0301t", {"e\u0301t"}},
                                  {"\u0301\u0301 \u0301", {"\u0301\u0301", " \u0301"}},
                                  {"!!\u0301", {"!!", "\u0301"}},
                                  {"!\u0301", {"!\u0301"}}});
  expect_pieces(pattern::megatron_v1, {{"it's", {"it", "'s"}},
                                       {"'sad", {"'sad"}},  // a prefix, never a contraction
                                       {"12", {"1", "2"}}});
}

}  // namespace
}  // namespace millrace::tokenizer::detail
