// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

/// Unicode properties that pre-tokenizers use. scripts/unicode_tables generates the tables.
namespace millrace::tokenizer::detail {

/// The four classes that GPT-2's pattern distinguishes. Each code point belongs to exactly one
/// class.
enum class char_class : std::uint8_t {
  other,   ///< all other code points, including unassigned ones
  letter,  ///< \p{L}
  number,  ///< \p{N}: includes fractions, Roman numerals, superscripts
  space,   ///< \s: the 25 code points of White_Space, which exclude U+001C to U+001F
};

/// Bits for the general categories and scripts that patterns use. Most patterns need only the low
/// eight bits.
struct char_flags {
  static constexpr std::uint16_t letter = 1 << 0;       ///< \p{L}
  static constexpr std::uint16_t number = 1 << 1;       ///< \p{N}
  static constexpr std::uint16_t space = 1 << 2;        ///< \s, as in char_class
  static constexpr std::uint16_t newline = 1 << 3;      ///< only CR and LF
  static constexpr std::uint16_t upper = 1 << 4;        ///< \p{Lu} or \p{Lt}; also a letter
  static constexpr std::uint16_t lower = 1 << 5;        ///< \p{Ll}; also a letter
  static constexpr std::uint16_t mark = 1 << 6;         ///< \p{M}
  static constexpr std::uint16_t han = 1 << 7;          ///< \p{Han}: most are letters, some are not
  static constexpr std::uint16_t punctuation = 1 << 8;  ///< \p{P}
  static constexpr std::uint16_t symbol = 1 << 9;       ///< \p{S}
};

/// Version of the tables, e.g. "16.0.0".
extern const char* const unicode_version;

inline constexpr std::uint32_t flag_block_size = 128;
inline constexpr std::uint32_t flag_limit = 7172 * flag_block_size;
extern const std::uint8_t flag_block_of[];
extern const std::uint16_t flag_blocks[];
extern const std::uint32_t decimal_zeros[];
extern const std::size_t decimal_zero_count;

/// The char_flags of a code point, or 0 if `point` is not a code point.
inline std::uint16_t flags_of(std::uint32_t point) noexcept {
  if (point < flag_block_size) return flag_blocks[point];  // ASCII is the first block
  if (point >= flag_limit) return 0;
  const std::size_t block = flag_block_of[point / flag_block_size];
  return flag_blocks[block * flag_block_size + point % flag_block_size];
}

/// The class of a code point, or `other` if `point` is not a code point.
inline char_class class_of(std::uint32_t point) noexcept {
  const unsigned flags = flags_of(point);
  return static_cast<char_class>(
      std::bit_width(flags & (char_flags::letter | char_flags::number | char_flags::space)));
}

/// Value of a decimal digit of any script (\p{Nd}), or -1.
inline int decimal_value(std::uint32_t point) noexcept {
  if (point < 0x80) return point >= '0' && point <= '9' ? static_cast<int>(point - '0') : -1;
  const std::uint32_t* end = decimal_zeros + decimal_zero_count;
  const std::uint32_t* above = std::upper_bound(decimal_zeros, end, point);
  const std::uint32_t value = point - above[-1];  // above[-1] exists: the first zero is U+0030
  return value < 10 ? static_cast<int>(value) : -1;
}

/// True if `point` is in a block that BERT treats as Chinese. BERT omits U+2B820 to U+2B91F, so
/// this function does too.
inline bool is_bert_chinese(std::uint32_t point) noexcept {
  if (point < 0x3400) return false;
  const auto in = [point](std::uint32_t first, std::uint32_t last) {
    return point >= first && point <= last;
  };
  return in(0x4E00, 0x9FFF) || in(0x3400, 0x4DBF) || in(0x20000, 0x2A6DF) || in(0x2A700, 0x2B73F) ||
         in(0x2B740, 0x2B81F) || in(0x2B920, 0x2CEAF) || in(0xF900, 0xFAFF) || in(0x2F800, 0x2FA1F);
}

}  // namespace millrace::tokenizer::detail
