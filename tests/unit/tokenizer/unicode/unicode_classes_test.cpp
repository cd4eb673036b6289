// SPDX-License-Identifier: Apache-2.0
#include "unicode/unicode_classes.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

// Counts over all of Unicode 16.0 as its character database gives them: a table of another
// version, or one that is read off by a block, has other counts.
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
  EXPECT_EQ(decimal_value(0x1D7D8), 0);  // five sets of mathematical digits follow each other
  EXPECT_EQ(decimal_value(0x1D7FF), 9);
  EXPECT_EQ(decimal_value(0xB2), -1);  // a superscript is a number, not a decimal digit
}

}  // namespace
}  // namespace millrace::tokenizer::detail
