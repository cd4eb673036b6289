// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace millrace::tokenizer::detail {

/// The kinds of a group by the byte that a character begins with.
///
/// Those of the ASCII characters, nothing for bytes that continue a character, and for the others
/// the kinds that all characters with that first byte share, or `varied`.
struct alignas(64) kind_tables {
  static constexpr std::uint8_t varied = 0xFF;  // no character is of all kinds
  std::array<std::uint8_t, 256> by_byte{};
};

template <class Group>
std::uint8_t kinds_of_range(std::uint32_t first, std::uint32_t end) noexcept {
  const unsigned shared = Group::kinds(first) & Group::used_kinds;
  for (std::uint32_t point = first + 1; point < end; ++point) {
    if ((Group::kinds(point) & Group::used_kinds) != shared) return kind_tables::varied;
  }
  return static_cast<std::uint8_t>(shared);
}

template <class Group>
kind_tables make_kind_tables() noexcept {
  kind_tables tables;
  for (std::uint32_t byte = 0; byte < 0x80; ++byte) {
    tables.by_byte[byte] = kinds_of_range<Group>(byte, byte + 1);
  }
  for (std::uint32_t byte = 0xC0; byte < 0x100; ++byte) {
    tables.by_byte[byte] = kind_tables::varied;  // four bytes are too many characters to try
    const std::uint32_t two = (byte & 0x1F) << 6;
    const std::uint32_t three = (byte & 0x0F) << 12;
    if (byte >= 0xC2 && byte < 0xE0) tables.by_byte[byte] = kinds_of_range<Group>(two, two + 64);
    if (byte > 0xE0 && byte < 0xF0 && byte != 0xED) {
      tables.by_byte[byte] = kinds_of_range<Group>(three, three + 0x1000);
    }
  }
  tables.by_byte[0xED] = kinds_of_range<Group>(0xD000, 0xD800);  // what follows are surrogates
  return tables;
}

}  // namespace millrace::tokenizer::detail
