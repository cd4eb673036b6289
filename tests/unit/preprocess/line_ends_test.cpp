// SPDX-License-Identifier: Apache-2.0
#include "input/line_ends.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/cpu_time.hpp"
#include "support/naive_lines.hpp"

namespace millrace::preprocess {
namespace {

using namespace std::string_view_literals;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  line_splitter splitter(text);
  for (std::string_view line; splitter.next(line);) lines.emplace_back(line);
  return lines;
}

// The lines of every short text are those of Python's universal newlines. These 21,845 texts
// contain every way in which two line ends can be adjacent.
TEST(LineSplitter, AgreesWithUniversalNewlinesOnEveryShortText) {
  test::for_all_texts("\r\n a", 7, [](const std::string& text) {
    ASSERT_EQ(lines_of(text), test::naive_lines(text)) << testing::PrintToString(text);
  });
}

// No other separator ends a line. In Python, str.splitlines() ends lines at each separator in this
// text, but reading a text file does not.
TEST(LineSplitter, EndsNoLineAtOtherSeparators) {
  const auto text = "a\v\f\x1C\x1D\x1E\xC2\x85\xE2\x80\xA8\xE2\x80\xA9\0b"sv;
  EXPECT_EQ(lines_of(text), std::vector<std::string>{std::string(text)});
}

// Parsers of a line rely on the padding after the text, so each line must be a view into the text.
TEST(LineSplitter, GivesViewsIntoTheText) {
  const std::string text = "one\r\ntwo\rthree\nfour";
  line_splitter splitter(text);
  std::string_view line;
  for (const std::size_t at : {0U, 5U, 9U, 15U}) {
    ASSERT_TRUE(splitter.next(line));
    EXPECT_EQ(line.data(), text.data() + at);
  }
  EXPECT_FALSE(splitter.next(line));
}

TEST(LineSplitter, StaysAtTheEnd) {
  line_splitter splitter("a\n");
  std::string_view line;
  EXPECT_TRUE(splitter.next(line));
  EXPECT_FALSE(splitter.next(line));
  EXPECT_FALSE(splitter.next(line));
}

// Splitting takes time in proportion to the text. If every line started a search for the kind of
// line end that does not occur, this test would take hours.
TEST(LineSplitter, TakesTimeInProportionToTheText) {
  const std::size_t size = 4 << 20;
  for (const char end : {'\r', '\n'}) {
    const std::string text(size, end);
    const double start = test::cpu_seconds();
    line_splitter splitter(text);
    std::size_t lines = 0;
    for (std::string_view line; splitter.next(line); ++lines) {
      if (lines % 4096 == 0) {
        ASSERT_LT(test::cpu_seconds() - start, 10.0)
            << "after " << lines << " lines of character " << int{end};
      }
    }
    EXPECT_EQ(lines, size);
  }
}

}  // namespace
}  // namespace millrace::preprocess
