// SPDX-License-Identifier: Apache-2.0
#include "unicode/unicode_classes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

// The counts are those of the database of Unicode 16.0. A table of another version, or a table that
// is read off by one block, gives other counts.
TEST(UnicodeClasses, CountTheCodePointsOfVersion16) {
  ASSERT_STREQ(unicode_version, "16.0.0");
  std::map<char_class, int> counts;
  int decimals = 0;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    ++counts[class_of(point)];
    decimals += decimal_value(point) >= 0;
  }
  EXPECT_EQ(counts[char_class::letter], 141028);
  EXPECT_EQ(counts[char_class::number], 1911);
  EXPECT_EQ(counts[char_class::space], 25);
  EXPECT_EQ(decimals, 760);
}

TEST(UnicodeClasses, TellApartWhatIsOftenMistaken) {
  for (const std::uint32_t space :
       {0x09U, 0x0DU, 0x20U, 0x85U, 0xA0U, 0x1680U, 0x200AU, 0x2029U, 0x3000U}) {
    EXPECT_EQ(class_of(space), char_class::space) << std::hex << space;
  }
  for (const std::uint32_t none : {0x1CU, 0x1FU, 0x180EU, 0x200BU, 0x2060U, 0xFEFFU}) {
    EXPECT_EQ(class_of(none), char_class::other) << std::hex << none;  // Python: 1C to 1F are space
  }
  for (const std::uint32_t letter :
       {0xAAU, 0x2B0U, 0x1C5U, 0x5D0U, 0x4E00U, 0x30FCU, 0x3005U, 0x323AFU}) {
    EXPECT_EQ(class_of(letter), char_class::letter) << std::hex << letter;
  }
  for (const std::uint32_t number : {0xB2U, 0xBDU, 0x660U, 0x2160U, 0x2460U, 0x3007U, 0x1D7D8U}) {
    EXPECT_EQ(class_of(number), char_class::number) << std::hex << number;
  }
  for (const std::uint32_t mark : {0x300U, 0x903U, 0x20DDU, 0xE0100U}) {
    EXPECT_EQ(class_of(mark), char_class::other) << std::hex << mark;
  }
  EXPECT_EQ(class_of(0x1C89), char_class::letter);   // new in 16.0
  EXPECT_EQ(class_of(0x10D40), char_class::number);  // new in 16.0
}

TEST(UnicodeClasses, TakeValuesThatAreNoCodePoints) {
  EXPECT_EQ(class_of(0x323B0), char_class::other);  // the tables end here
  EXPECT_EQ(class_of(0x110000), char_class::other);
  EXPECT_EQ(class_of(0xFFFFFFFF), char_class::other);
  EXPECT_EQ(decimal_value(0xFFFFFFFF), -1);
}

TEST(DecimalValue, IsThatOfTheDigitInAnyScript) {
  EXPECT_EQ(decimal_value('0'), 0);
  EXPECT_EQ(decimal_value('9'), 9);
  EXPECT_EQ(decimal_value('0' - 1), -1);
  EXPECT_EQ(decimal_value('9' + 1), -1);
  EXPECT_EQ(decimal_value(0x7F), -1);
  EXPECT_EQ(decimal_value(0x80), -1);
  EXPECT_EQ(decimal_value(0x665), 5);
  EXPECT_EQ(decimal_value(0x1D7D8), 0);  // five sets of mathematical digits are consecutive
  EXPECT_EQ(decimal_value(0x1D7FF), 9);
  EXPECT_EQ(decimal_value(0xB2), -1);  // a superscript is a number, not a decimal digit
}

// The counts of each flag are those of Unicode 16.0. The flag `han` follows the property Script,
// regardless of the category of the character.
TEST(UnicodeClasses, FlagWhatThePatternsAskFor) {
  std::map<std::string, int> counts;
  for (std::uint32_t point = 0; point < 0x110000; ++point) {
    const unsigned flags = flags_of(point);
    const auto count = [&](const char* name, unsigned mask) {
      counts[name] += (flags & mask) != 0;
    };
    count("upper", char_flags::upper);
    count("lower", char_flags::lower);
    count("mark", char_flags::mark);
    count("han", char_flags::han);
    count("punctuation", char_flags::punctuation);
    count("symbol", char_flags::symbol);
    count("newline", char_flags::newline);
    if ((flags & (char_flags::upper | char_flags::lower)) != 0) {
      EXPECT_NE(flags & char_flags::letter, 0U) << std::hex << point;
    }
  }
  EXPECT_EQ(counts["upper"], 1889);
  EXPECT_EQ(counts["lower"], 2258);
  EXPECT_EQ(counts["mark"], 2501);
  EXPECT_EQ(counts["han"], 99030);
  EXPECT_EQ(counts["punctuation"], 855);
  EXPECT_EQ(counts["symbol"], 8514);
  EXPECT_EQ(counts["newline"], 2);
  EXPECT_EQ(flags_of(0xFFFFFFFF), 0U);
  EXPECT_EQ(flags_of(0x3007), char_flags::number | char_flags::han);
  EXPECT_EQ(flags_of(0x1C5), char_flags::letter | char_flags::upper);  // title case
  EXPECT_EQ(flags_of(0xE0100), char_flags::mark);                      // far from everything else
}

}  // namespace
}  // namespace millrace::tokenizer::detail
