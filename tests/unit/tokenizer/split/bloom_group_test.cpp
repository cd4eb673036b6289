// SPDX-License-Identifier: Apache-2.0
#include "split/bloom_group.hpp"

#include <gtest/gtest.h>

#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

TEST(BloomGroup, EndsWordsAtWhiteSpaceAndSomePunctuation) {
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

TEST(BloomGroup, GivesAWordTheOneSpaceBeforeIt) {
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
}  // namespace millrace::tokenizer::detail
