// SPDX-License-Identifier: Apache-2.0
#include "unicode/utf8.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

TEST(CodePointAt, ReadsTheEdgesOfEveryLength) {
  const std::vector<std::pair<std::string, std::uint32_t>> cases = {
      {std::string(1, '\0'), 0}, {"\x7F", 0x7F},          {"\u0080", 0x80},
      {"\u07FF", 0x7FF},         {"\u0800", 0x800},       {"\uFFFF", 0xFFFF},
      {"\U00010000", 0x10000},   {"\U0010FFFF", 0x10FFFF}};
  for (const auto& [text, value] : cases) {
    const code_point point = code_point_at("x" + text + "y", 1);
    EXPECT_EQ(point.value, value);
    EXPECT_EQ(point.size_bytes, text.size());
  }
}

// Bytes that are missing must not be read. Each text has its own allocation, so that ASan detects
// reads past its end.
TEST(CodePointAt, StaysInsideWhatIsNotUtf8) {
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (std::size_t size = 1; size < 5; ++size) {
      std::vector<char> bytes(size, '\x80');
      bytes[0] = static_cast<char>(lead);
      const code_point point = code_point_at({bytes.data(), bytes.size()}, 0);
      EXPECT_GE(point.size_bytes, 1U);
      EXPECT_LE(point.size_bytes, size);
    }
  }
}

TEST(AppendSmallCodePoint, WritesWhatIsReadBack) {
  for (std::uint32_t value = 0; value < 0x800; ++value) {
    std::string text;
    append_small_code_point(text, value);
    EXPECT_EQ(code_point_at(text, 0).value, value);
    EXPECT_EQ(code_point_at(text, 0).size_bytes, text.size());
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
