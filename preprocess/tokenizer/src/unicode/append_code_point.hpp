// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

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

/// Offset of the code point that ends at `end`.
///
/// @pre 0 < end <= text.size()
inline std::size_t code_point_before(std::string_view text, std::size_t end) noexcept {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

}  // namespace millrace::tokenizer::detail
