// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/extra_spaces.hpp"

#include <gtest/gtest.h>

namespace millrace::tokenizer::detail {
namespace {

std::string marked(std::string_view text) {
  std::string result;
  mark_extra_spaces(text, result);
  for (std::size_t at = 0; (at = result.find("\xE2\x98\xAF", at)) != std::string::npos;) {
    result.replace(at, 3, "@");
  }
  return result;
}

// The result equals that of a regular expression in Python. The expected values come from Python.
TEST(MarkExtraSpaces, DoesWhatThePatternDoes) {
  EXPECT_EQ(marked(""), "");
  EXPECT_EQ(marked("a b"), "a b");
  EXPECT_EQ(marked("a  b"), "a  @  b");
  EXPECT_EQ(marked(" a"), " @ a");
  EXPECT_EQ(marked("a "), "a @");
  EXPECT_EQ(marked("a  "), "a  @  @");
  EXPECT_EQ(marked(" "), " @");
  EXPECT_EQ(marked("  "), " @  @  @");
  EXPECT_EQ(marked("a \n"), "a @");
  EXPECT_EQ(marked("a \n\n"), "a");
  EXPECT_EQ(marked("a\xE3\x80\x80\x1F"), "a");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
