// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// U+FFFD, which replaces ids that have no text and bytes that are not UTF-8.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

struct code_point {
  std::uint32_t value;
  std::size_t size_bytes;
};

/// The code point that begins at offset `at`.
///
/// Texts are valid UTF-8 by contract, so this function does not validate. In invalid UTF-8, it
/// still reads only inside `text`, and returns a size of at least one byte.
/// @pre at < text.size()
inline code_point code_point_at(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(text[at + i])};
  };
  const std::size_t left = text.size() - at;
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0 && left >= 2) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0 && left >= 3) {
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  if (left >= 4) {
    return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
            4};
  }
  return {lead, 1};
}

/// True if the byte continues a character that began before it.
inline bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

/// @pre point < 0x800
inline void append_small_code_point(std::string& text, std::uint32_t point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else {
    text += static_cast<char>(0xC0 | point >> 6);
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
}

/// Appends `point` to `text` in UTF-8.
///
/// @pre point < 0x110000
inline void append_code_point(std::string& text, std::uint32_t point) {
  if (point < 0x800) return append_small_code_point(text, point);
  const auto continued = [](std::uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3F)); };
  if (point < 0x10000) {
    text += static_cast<char>(0xE0 | point >> 12);
  } else {
    text += static_cast<char>(0xF0 | point >> 18);
    text += continued(point >> 12);
  }
  text += continued(point >> 6);
  text += continued(point);
}

/// Offset of the character that ends at `end`.
/// @pre 0 < end <= text.size()
inline std::size_t character_before(std::string_view text, std::size_t end) noexcept {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && is_continuation(text[at])) --at;
  return at;
}

/// The characters on the two sides of a place in a text.
struct neighbours {
  std::uint32_t left;
  std::uint32_t right;
};

/// @pre 0 < at < text.size(), a character begins at `at`
inline neighbours neighbours_at(std::string_view text, std::size_t at) noexcept {
  return {code_point_at(text, character_before(text, at)).value, code_point_at(text, at).value};
}

}  // namespace millrace::tokenizer::detail
