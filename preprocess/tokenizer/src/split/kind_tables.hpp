// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace::tokenizer::detail {

/// Maps the first byte of a character to the kinds (letter, number, ...) of that character in a
/// group of patterns.
///
/// ASCII bytes map to their kinds, and continuation bytes map to 0. Any other byte maps to the
/// kinds that all characters with this first byte share, or to `varied` if their kinds differ.
struct alignas(64) kind_tables {
  static constexpr std::uint8_t varied = 0xFF;  // no character has all kinds
  std::array<std::uint8_t, 256> by_byte{};

  /// The kinds of each code point below 0x10000. In UTF-8, these characters have up to three bytes.
  std::array<std::uint8_t, 0x10000> by_point{};
};

inline std::uint8_t kinds_of_range(const kind_tables& tables, std::size_t first,
                                   std::size_t end) noexcept {
  const std::uint8_t shared = tables.by_point[first];
  for (std::size_t point = first + 1; point < end; ++point) {
    if (tables.by_point[point] != shared) return kind_tables::varied;
  }
  return shared;
}

template <class Group>
kind_tables make_kind_tables() noexcept {
  kind_tables tables;
  for (std::uint32_t point = 0; point < tables.by_point.size(); ++point) {
    tables.by_point[point] = static_cast<std::uint8_t>(Group::kinds(point) & Group::used_kinds);
  }
  for (std::size_t byte = 0; byte < 0x80; ++byte) tables.by_byte[byte] = tables.by_point[byte];
  for (std::size_t byte = 0xC0; byte < 0x100; ++byte) {
    tables.by_byte[byte] = kind_tables::varied;  // four-byte characters are too many to check
    const std::size_t two = (byte & 0x1F) << 6;
    const std::size_t three = (byte & 0x0F) << 12;
    if (byte >= 0xC2 && byte < 0xE0) tables.by_byte[byte] = kinds_of_range(tables, two, two + 64);
    if (byte > 0xE0 && byte < 0xF0 && byte != 0xED) {
      tables.by_byte[byte] = kinds_of_range(tables, three, three + 0x1000);
    }
  }
  tables.by_byte[0xED] = kinds_of_range(tables, 0xD000, 0xD800);  // the rest are surrogates
  return tables;
}

}  // namespace millrace::tokenizer::detail
