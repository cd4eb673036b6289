// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <millrace/formats/detail/utf8.hpp>

/// How texts and tokens of a dataset are printed. They may contain any bytes.
namespace millrace::command {

/// True if stdout is a terminal.
inline bool stdout_is_terminal() noexcept {
  return ::isatty(STDOUT_FILENO) == 1;
}

/// True if an answer on stdout may have colors: stdout is a terminal, `NO_COLOR` is not set
/// (no-color.org) and `TERM` is not "dumb".
inline bool stdout_has_colors() noexcept {
  const char* const off = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  return stdout_is_terminal() && (off == nullptr || *off == '\0') &&
         (term == nullptr || std::string_view(term) != "dumb");
}

/// The colors of an answer.
enum class ink : std::uint8_t { plain, border, faint, strong };

/// Returns `text` in a color if `colors` is true, otherwise unchanged.
inline std::string inked(ink color, std::string_view text, bool colors) {
  constexpr const char* codes[] = {"", "\x1b[36m", "\x1b[2m", "\x1b[1m"};
  if (!colors || color == ink::plain) return std::string(text);
  return std::string(codes[static_cast<std::size_t>(color)]) + std::string(text) + "\x1b[0m";
}

namespace detail {

/// The code point of a well-formed UTF-8 sequence.
constexpr std::uint32_t code_point_of(std::string_view sequence) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  std::uint32_t code_point = byte(0) & (0x7FU >> sequence.size());
  for (std::size_t i = 1; i < sequence.size(); ++i) code_point = code_point << 6 | (byte(i) & 63U);
  return code_point;
}

struct code_range {
  std::uint32_t first;
  std::uint32_t last;
};

/// Control characters, and characters that are invisible, change the direction of the text, look
/// like a space, combine with the character before them, or stand for an invalid byte.
constexpr bool is_seen(std::uint32_t code_point) noexcept {
  constexpr code_range unseen[] = {
      {0x00, 0x1F},       {0x7F, 0xA0},       {0xAD, 0xAD},        {0x300, 0x36F},
      {0x61C, 0x61C},     {0x115F, 0x1160},   {0x1680, 0x1680},    {0x17B4, 0x17B5},
      {0x180B, 0x180F},   {0x1AB0, 0x1AFF},   {0x1DC0, 0x1DFF},    {0x2000, 0x200F},
      {0x2028, 0x202F},   {0x205F, 0x206F},   {0x20D0, 0x20FF},    {0x2800, 0x2800},
      {0x3000, 0x3000},   {0x3164, 0x3164},   {0xD800, 0xF8FF},    {0xFE00, 0xFE0F},
      {0xFE20, 0xFE2F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},    {0xFFF0, 0xFFFF},
      {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0x10FFFF},
  };
  return std::ranges::none_of(unseen, [&](const code_range& each) {
    return each.first <= code_point && code_point <= each.last;
  });
}

}  // namespace detail

/// Returns `text` in quotes, so that every byte can be told: visible characters are unchanged,
/// quotes and backslashes get a backslash, line ends and tabs are `\n`, `\r` and `\t`, other
/// characters that are not visible are `\u{200b}`, and bytes that are not UTF-8, such as a part of
/// a character, are `\xe3`.
inline std::string escaped_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(text);
    const std::string_view sequence = text.substr(0, size == 0 ? 1 : size);
    text.remove_prefix(sequence.size());
    const std::uint32_t code_point = size == 0 ? 0 : detail::code_point_of(sequence);
    if (size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(sequence[0]));
    } else if (sequence == "\"" || sequence == "\\") {
      (out += '\\') += sequence;
    } else if (sequence == "\n" || sequence == "\r" || sequence == "\t") {
      out += sequence == "\n" ? "\\n" : sequence == "\r" ? "\\r" : "\\t";
    } else if (detail::is_seen(code_point)) {
      out += sequence;
    } else {
      out += fmt::format("\\u{{{:x}}}", code_point);
    }
  }
  return out += '"';
}

/// Returns `text` without characters that would control a terminal: each of them, except for line
/// ends and tabs, becomes `\xHH`, and so does each byte that is not UTF-8.
inline std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(text);
    const std::string_view sequence = text.substr(0, size == 0 ? 1 : size);
    text.remove_prefix(sequence.size());
    const std::uint32_t code_point = detail::code_point_of(sequence);
    const bool is_control =
        size == 0 || code_point < 0x20 || (0x7F <= code_point && code_point < 0xA0);
    if (!is_control || sequence == "\n" || sequence == "\t") {
      out += sequence;
      continue;
    }
    for (const char byte : sequence) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  return out;
}

}  // namespace millrace::command
