// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace::formats {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

/// Two lower-case hexadecimal digits per byte, in the order of the bytes.
inline std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += hex_digits[std::to_integer<std::size_t>(byte >> 4)];
    text += hex_digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

/// The eight hexadecimal digits of a number, the highest first: the usual form of a CRC-32C.
inline std::string hex(std::uint32_t number) {
  std::string text;
  for (int shift = 28; shift >= 0; shift -= 4) text += hex_digits[number >> shift & 15];
  return text;
}

}  // namespace millrace::formats
