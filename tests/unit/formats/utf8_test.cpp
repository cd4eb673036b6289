// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/utf8.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::formats {
namespace {

static_assert(utf8_sequence_bytes("a") == 1);

// Encodes a number by the definition of UTF-8, without checks. Returns an empty text for numbers
// that are not code points of characters.
std::string encoded(std::uint32_t point) {
  const auto tail = [&](unsigned shift) {
    return static_cast<char>(0x80 | ((point >> shift) & 0x3F));
  };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), tail(0)};
  if (point >= 0xD800 && point < 0xE000) return {};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | point >> 18), tail(12), tail(6), tail(0)};
}

// Returns the size of the first character, or 0 if the character is not well-formed. Decodes the
// character without checks, and encodes the result again. This gives the same bytes only if the
// character is well-formed.
std::size_t naive_size(const std::string& text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const std::uint32_t lead = byte(0);
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < size) return 0;
  std::uint32_t point = size == 1 ? lead : lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) point = point << 6 | (byte(i) & 0x3F);
  if (point > 0x10FFFF) return 0;
  const std::string again = encoded(point);
  return !again.empty() && text.starts_with(again) ? again.size() : 0;
}

TEST(Utf8SequenceBytes, TakesEveryCharacterWholeOnly) {
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    const std::string text = encoded(point);
    if (text.empty()) continue;  // a surrogate
    ASSERT_EQ(utf8_sequence_bytes(text), text.size()) << point;
    ASSERT_EQ(utf8_sequence_bytes(text + "\x80"), text.size()) << point;
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(utf8_sequence_bytes(text.substr(0, cut)), 0U) << point;
      ASSERT_EQ(utf8_sequence_bytes(text.substr(0, cut) + "aaa"), 0U) << point;
      ASSERT_EQ(utf8_sequence_bytes(text.substr(cut)), 0U) << point;
    }
  }
}

// The result equals that of a naive decoder for every combination of the first two bytes. The
// combinations are tested alone and before every kind of third and fourth byte.
TEST(Utf8SequenceBytes, AgreesWithANaiveDecoderOnEveryPrefix) {
  const std::vector<std::string> tails = {"",         "a",        "\x7F",     "\x80",
                                          "\xBF",     "\xC0",     "\x80\x7F", "\x80\x80",
                                          "\xBF\xBF", "\x80\xC0", "aa",       "\xFF\xFF"};
  std::size_t well_formed = 0;
  for (int first = 0; first < 256; ++first) {
    const std::string one(1, static_cast<char>(first));
    ASSERT_EQ(utf8_sequence_bytes(one), first < 0x80 ? 1U : 0U) << first;
    for (int second = 0; second < 256; ++second) {
      const std::string two = one + static_cast<char>(second);
      for (const std::string& tail : tails) {
        const std::size_t size = utf8_sequence_bytes(two + tail);
        ASSERT_EQ(size, naive_size(two + tail)) << testing::PrintToString(two + tail);
        well_formed += size > 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(well_formed, 0U);
}

// Surrogates, overlong forms and numbers that are too large are refused. The test encodes every
// surrogate, and examples of the other two kinds, as if they were characters.
TEST(Utf8SequenceBytes, RefusesSurrogatesLongFormsAndWhatIsTooHigh) {
  for (std::uint32_t point = 0xD800; point < 0xE000; ++point) {
    const std::string text = {'\xED', static_cast<char>(0x80 | ((point >> 6) & 0x3F)),
                              static_cast<char>(0x80 | (point & 0x3F))};
    ASSERT_EQ(utf8_sequence_bytes(text), 0U) << point;
  }
  for (const char* text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF8\x88\x80\x80\x80"}) {
    EXPECT_EQ(utf8_sequence_bytes(text), 0U) << testing::PrintToString(text);
  }
}

// Nothing after the text is read. Each text has its own allocation, so that ASan detects a read
// past its end.
TEST(Utf8SequenceBytes, ReadsNothingBehindTheText) {
  for (int lead = 0; lead < 256; ++lead) {
    for (std::size_t size = 1; size < 4; ++size) {
      std::vector<char> bytes(size, '\x90');
      bytes[0] = static_cast<char>(lead);
      EXPECT_LE(utf8_sequence_bytes({bytes.data(), bytes.size()}), size);
    }
  }
  EXPECT_EQ(utf8_sequence_bytes({}), 0U);
}

}  // namespace
}  // namespace millrace::formats
