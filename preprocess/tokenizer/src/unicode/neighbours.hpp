// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// Offset of the character that ends at `end`.
/// @pre 0 < end <= text.size()
inline std::size_t character_before(std::string_view text, std::size_t end) noexcept {
  std::size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
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
