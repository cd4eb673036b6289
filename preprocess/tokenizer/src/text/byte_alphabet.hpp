// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "unicode/utf8.hpp"

/// The alphabet with which GPT-2's files write bytes as printable characters.
///
/// The 188 bytes that are printable characters in Latin-1 map to themselves. The other 68 bytes
/// (controls, space, 0x7F to 0xA0, and 0xAD, the soft hyphen) map to U+0100, U+0101 and so on, in
/// the order of the bytes. So the space maps to U+0120.
namespace millrace::tokenizer::detail {

constexpr bool spells_itself(std::uint32_t byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

struct byte_alphabet {
  static constexpr std::uint32_t size = 0x100 + 68;  ///< last character + 1
  std::array<std::uint16_t, 256> character{};        ///< by byte
  std::array<std::int16_t, size> byte{};             ///< by code point; -1 if not in the alphabet
};

inline constexpr byte_alphabet gpt2_alphabet = [] {
  byte_alphabet a;
  a.byte.fill(-1);
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const std::uint32_t character = spells_itself(byte) ? byte : next++;
    a.character[byte] = static_cast<std::uint16_t>(character);
    a.byte[character] = static_cast<std::int16_t>(byte);
  }
  return a;
}();

/// The bytes that `spelled` (valid UTF-8) represents, or nullopt if a character is not in the
/// alphabet.
inline std::optional<std::string> bytes_of(std::string_view spelled) {
  std::string bytes;
  bytes.reserve(spelled.size());
  for (std::size_t at = 0; at < spelled.size();) {
    const code_point point = code_point_at(spelled, at);
    if (point.value >= byte_alphabet::size || gpt2_alphabet.byte[point.value] < 0)
      return std::nullopt;
    bytes += static_cast<char>(gpt2_alphabet.byte[point.value]);
    at += point.size_bytes;
  }
  return bytes;
}

/// `bytes` written in the alphabet.
inline std::string spelling_of(std::string_view bytes) {
  std::string spelled;
  for (const char byte : bytes) {
    append_small_code_point(spelled, gpt2_alphabet.character[static_cast<unsigned char>(byte)]);
  }
  return spelled;
}

}  // namespace millrace::tokenizer::detail
