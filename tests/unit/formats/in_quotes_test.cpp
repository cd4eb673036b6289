// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/in_quotes.hpp>

#include <gtest/gtest.h>

#include <string>

namespace millrace::formats {
namespace {

// A message is one line of ASCII, no matter which bytes the file contains.
TEST(InQuotes, ShowsAnyBytesOnOneLineOfAscii) {
  EXPECT_EQ(in_quotes("a b"), "'a b'");
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("a\n\u00E9\x7F"), "'a\\x0a\\xc3\\xa9\\x7f'");
  EXPECT_EQ(in_quotes(std::string(40, 'x')), "'" + std::string(40, 'x') + "'");
  EXPECT_EQ(in_quotes(std::string(41, 'x')), "'" + std::string(40, 'x') + "'...");
}

}  // namespace
}  // namespace millrace::formats
