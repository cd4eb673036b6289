// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "split/local_matchers.hpp"
#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

TEST(BloomMatcher, EndsWordsAtWhiteSpaceAndSomePunctuation) {
  test::expect_pieces(pattern::bloom,
                      {
                          {"Hello world", {"Hello", " world"}},
                          {"it's 3:45;", {"it's", " 3:45;"}},
                          {"a[0]{x}=\"y\"", {"a[0]{x}=\"y\""}},
                          {"f(x)|g", {"f", "(", "x", ")|", "g"}},
                          {"one,two. three", {"one", ",", "two", ".", " three"}},
                          {"\u4E2D\u6587\u3002\u65E5", {"\u4E2D\u6587", "\u3002", "\u65E5"}},
                          {"\u0915\u0964\u0916\u06D4", {"\u0915", "\u0964", "\u0916", "\u06D4"}},
                      });
}

TEST(BloomMatcher, GivesAWordTheOneSpaceBeforeIt) {
  test::expect_pieces(pattern::bloom, {
                                          {" a", {" a"}},
                                          {"  a", {" ", " a"}},
                                          {"\t a", {"\t", " a"}},
                                          {" \ta", {" \t", "a"}},
                                          {"a\u00A0b", {"a", "\u00A0", "b"}},
                                          {"a \n b ", {"a", " \n", " b", " "}},
                                          {"a .b", {"a", " .", "b"}},
                                          {".  .", {".  ."}},
                                      });
}

}  // namespace

namespace {

TEST(DeepseekCoderMatcher, GivesWordsAndPunctuationTheOneSpaceBeforeThem) {
  test::expect_pieces(pattern::deepseek_coder, {
                                                   {"Hello world", {"Hello", " world"}},
                                                   {"it's", {"it", "'", "s"}},
                                                   {"if (x):", {"if", " (", "x", "):"}},
                                                   {"a  b", {"a", " ", " b"}},
                                                   {"\tx\u00A0y", {"\tx", "\u00A0y"}},
                                                   {"x = y", {"x", " =", " y"}},
                                                   {"x +  y+z", {"x", " + ", " y", "+", "z"}},
                                               });
}

TEST(DeepseekCoderMatcher, HasNewlinesAndNumbersByThemselves) {
  test::expect_pieces(pattern::deepseek_coder, {
                                                   {"a\n\nb", {"a", "\n", "\n", "b"}},
                                                   {"\r\n  ", {"\r", "\n", "  "}},
                                                   {"x12 3", {"x", "1", "2", " ", "3"}},
                                                   {"\u00BD\u0966", {"\u00BD", "\u0966"}},
                                               });
}

TEST(DeepseekCoderMatcher, CutsWordsAtTheRangesOfTheFourthSplit) {
  test::expect_pieces(pattern::deepseek_coder,
                      {
                          {"ab\u4E2D\u6587cd", {"ab", "\u4E2D\u6587", "cd"}},
                          {" \u4E2D", {" ", "\u4E2D"}},
                          {"\u3000\u4E2D", {"\u3000\u4E2D"}},  // this space is in the ranges too
                          {"\u4E2D\u3002\u4E2D", {"\u4E2D", "\u3002", "\u4E2D"}},
                          {"a\u2014b \u2026", {"a", "\u2014", "b", " ", "\u2026"}},
                          {"\u9FA5\u9FA6", {"\u9FA5", "\u9FA6"}},
                      });
}

}  // namespace

}  // namespace millrace::tokenizer::detail
