// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// What the pre-tokenizers ask of Unicode. The tables are made by scripts/unicode_tables.
namespace millrace::tokenizer::detail {

/// The four classes that GPT-2's pattern tells apart; no code point is in two.
enum class char_class : std::uint8_t {
  other,   ///< none of the three below, unassigned code points included
  letter,  ///< \p{L}
  number,  ///< \p{N}: also fractions, Roman numerals, superscripts
  space,   ///< \s: the 25 code points of White_Space; U+001C to U+001F are not among them
};

/// Version of the tables, e.g. "16.0.0".
extern const char* const unicode_version;

inline constexpr std::uint32_t class_block_size = 128;
inline constexpr std::uint32_t class_limit = 1608 * class_block_size;
extern const std::uint8_t class_block_of[];
extern const std::uint64_t class_blocks[];
extern const std::uint32_t decimal_zeros[];
extern const std::size_t decimal_zero_count;

/// Any value is allowed: what is no code point is `other`.
inline char_class class_of(std::uint32_t point) noexcept {
  if (point >= class_limit) return char_class::other;
  const std::size_t block = class_block_of[point / class_block_size];
  const std::uint64_t word = class_blocks[block * 4 + point % class_block_size / 32];
  return static_cast<char_class>(word >> (point % 32 * 2) & 3);
}

/// Value of a decimal digit of any script (\p{Nd}), or -1.
inline int decimal_value(std::uint32_t point) noexcept {
  if (point < 0x80) return point >= '0' && point <= '9' ? static_cast<int>(point - '0') : -1;
  const std::uint32_t* end = decimal_zeros + decimal_zero_count;
  const std::uint32_t* above = std::upper_bound(decimal_zeros, end, point);
  const std::uint32_t value = point - above[-1];  // the first zero is U+0030, so there is one
  return value < 10 ? static_cast<int>(value) : -1;
}

}  // namespace millrace::tokenizer::detail
