// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::formats {

/// MD5 (RFC 1321) of `text`, as 32 lower-case hexadecimal digits.
///
/// For names that other programs made with it, Megatron's caches above all. It protects against
/// nothing: whoever wants two texts of one MD5 can have them.
inline std::string md5_hex(std::string_view text);

// ---------------------------------------------------------------------------------------------

namespace detail {

using md5_state = std::array<std::uint32_t, 4>;

/// floor(2^32 * |sin(i + 1)|), i = 0 to 63.
inline constexpr std::array<std::uint32_t, 64> md5_sines = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

inline constexpr std::array<std::array<int, 4>, 4> md5_shifts = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

/// Takes one block of 64 bytes into the state.
inline void md5_block(md5_state& state, std::string_view block) noexcept {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t byte = static_cast<unsigned char>(block[i]);
    words[i / 4] |= byte << i % 4 * 8;
  }
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::size_t word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c);
        word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d;
        word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d);
        word = 7 * i;
    }
    mixed += a + md5_sines[i] + words[word % 16];
    a = d;
    d = c;
    c = b;
    b += std::rotl(mixed, md5_shifts[i / 16][i % 4]);
  }
  state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d};
}

}  // namespace detail

inline std::string md5_hex(std::string_view text) {
  detail::md5_state state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::uint64_t size_bits = std::uint64_t{text.size()} * 8;
  for (; text.size() >= 64; text.remove_prefix(64)) detail::md5_block(state, text.substr(0, 64));

  // A one bit, zeros up to eight bytes before the end of a block, the length in bits.
  std::string tail(text);
  tail += '\x80';
  tail.append((120 - tail.size()) % 64, '\0');
  for (int i = 0; i < 8; ++i) tail += static_cast<char>(size_bits >> 8 * i & 0xFF);
  for (std::size_t at = 0; at < tail.size(); at += 64) {
    detail::md5_block(state, std::string_view(tail).substr(at, 64));
  }

  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (const std::uint32_t word : state) {
    for (int i = 0; i < 4; ++i) {
      hex += digits[word >> (8 * i + 4) & 15];
      hex += digits[word >> 8 * i & 15];
    }
  }
  return hex;
}

}  // namespace millrace::formats
