// SPDX-License-Identifier: Apache-2.0
#include "text/byte_alphabet.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::tokenizer::detail {
namespace {

TEST(ByteAlphabet, SpellsTheBytesThatPeopleKnow) {
  EXPECT_EQ(spelling_of("a!~"), "a!~");
  EXPECT_EQ(spelling_of(" "), "\u0120");
  EXPECT_EQ(spelling_of("\n"), "\u010A");
  EXPECT_EQ(spelling_of(std::string(1, '\0')), "\u0100");
  EXPECT_EQ(spelling_of("\x7F"), "\u0121");
  EXPECT_EQ(spelling_of("\xA0"), "\u0142");
  EXPECT_EQ(spelling_of("\xAD"), "\u0143");
  EXPECT_EQ(spelling_of("\u00E9"), "\u00C3\u00A9");
}

TEST(ByteAlphabet, ReadsBackWhatItSpells) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(bytes_of(spelling_of(all)), all);
}

TEST(ByteAlphabet, RefusesOtherCharacters) {
  EXPECT_EQ(bytes_of("a b"), std::nullopt);  // a space is spelled U+0120
  EXPECT_EQ(bytes_of("\u00AD"), std::nullopt);
  EXPECT_EQ(bytes_of("\u0144"), std::nullopt);  // one after the last
  EXPECT_EQ(bytes_of("\u65E5"), std::nullopt);
  EXPECT_EQ(bytes_of("\U0001F600"), std::nullopt);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
