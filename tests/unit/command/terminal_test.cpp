// SPDX-License-Identifier: Apache-2.0
#include <millrace/command/terminal.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include <millrace/formats/detail/utf8.hpp>

namespace millrace::command {
namespace {

TEST(EscapedText, ShowsEveryByteUnambiguously) {
  EXPECT_EQ(escaped_text(""), R"("")");
  EXPECT_EQ(escaped_text(" a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x90\xB4 "),
            "\" a\xC3\xA9\xE6\x97\xA5\xF0\x9F\x90\xB4 \"");
  EXPECT_EQ(escaped_text("\"\\\n\r\t"), R"("\"\\\n\r\t")");
  EXPECT_EQ(escaped_text("\xE6\x97"), R"("\xe6\x97")");
  EXPECT_EQ(escaped_text("\xA5"
                         "a"),
            R"("\xa5a")");
  EXPECT_EQ(escaped_text("\xED\xA0\x80"), R"("\xed\xa0\x80")") << "a surrogate is not UTF-8";
  EXPECT_EQ(escaped_text(std::string("\0\x1B\x7F", 3)), R"("\u{0}\u{1b}\u{7f}")");
  EXPECT_EQ(escaped_text("\xC2\x85\xC2\xA0\xE2\x80\x8B\xE2\x80\xAE"),
            R"("\u{85}\u{a0}\u{200b}\u{202e}")");
  EXPECT_EQ(escaped_text("\xEF\xBF\xBD"), R"("\u{fffd}")") << "not taken for an invalid byte";
  EXPECT_EQ(escaped_text("e\xCC\x81"), R"("e\u{301}")");
  EXPECT_EQ(escaped_text("\xF3\xA0\x81\xA1"), R"("\u{e0061}")");
}

TEST(EscapedText, DiffersForDifferentTexts) {
  std::set<std::string> seen;
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(seen.insert(escaped_text(std::string(1, static_cast<char>(byte)))).second) << byte;
  }
  for (std::uint32_t code_point = 0x80; code_point < 0x110000; ++code_point) {
    if (0xD800 <= code_point && code_point < 0xE000) continue;
    std::string text;
    formats::append_utf8(code_point, text);
    const std::string shown = escaped_text(text);
    ASSERT_TRUE(seen.insert(shown).second) << std::hex << code_point;
    const std::string escaped = fmt::format("\"\\u{{{:x}}}\"", code_point);
    ASSERT_TRUE(shown == '"' + text + '"' || shown == escaped) << shown;
  }
}

TEST(ForTerminal, KeepsTextAndLinesOnly) {
  EXPECT_EQ(for_terminal("a\tb\n\xE6\x97\xA5\xC2\xA0"), "a\tb\n\xE6\x97\xA5\xC2\xA0");
  EXPECT_EQ(for_terminal("\x1B[31mred\r\x07"), R"(\x1b[31mred\x0d\x07)");
  EXPECT_EQ(for_terminal("\xC2\x9B"
                         "31m"),
            R"(\xc2\x9b31m)")
      << "a C1 control starts a command, too";
  EXPECT_EQ(for_terminal("\xE6\x97"), R"(\xe6\x97)");
}

TEST(Inked, AddsCodesOnlyIfAsked) {
  EXPECT_EQ(inked(ink::border, "x", false), "x");
  EXPECT_EQ(inked(ink::plain, "x", true), "x");
  EXPECT_EQ(inked(ink::border, "x", true), "\x1b[36mx\x1b[0m");
}

}  // namespace
}  // namespace millrace::command
