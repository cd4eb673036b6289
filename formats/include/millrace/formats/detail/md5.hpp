// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <millrace/formats/detail/hex.hpp>

namespace millrace::formats {

/// MD5 (RFC 1321) of bytes that are passed in any number of pieces.
///
/// Use it only for names that other programs derive from an MD5, such as the names of Megatron's
/// caches. It gives no security: anyone can make two texts with the same MD5.
class md5 {
 public:
  md5& update(std::span<const std::byte> bytes) noexcept;
  /// The MD5 of all bytes so far, as 32 lower-case hexadecimal digits. More bytes may follow.
  std::string hex() const;

 private:
  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::byte, 64> block_{};
  std::uint64_t size_bytes_ = 0;
};

/// The MD5 of `text` as 32 lower-case hexadecimal digits.
inline std::string md5_hex(std::string_view text) {
  return md5().update(std::as_bytes(std::span(text))).hex();
}

// ---------------------------------------------------------------------------------------------

namespace detail {

using md5_state = std::array<std::uint32_t, 4>;

/// md5_sines[i] is floor(2^32 * |sin(i + 1)|).
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

/// Updates `state` with one block of 64 bytes.
inline void md5_block(md5_state& state, std::span<const std::byte, 64> block) noexcept {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i) {
    words[i / 4] |= std::to_integer<std::uint32_t>(block[i]) << i % 4 * 8;
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

inline md5& md5::update(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t at = size_bytes_ % block_.size();
    const std::size_t n = std::min(block_.size() - at, bytes.size());
    std::copy_n(bytes.begin(), n, block_.begin() + static_cast<std::ptrdiff_t>(at));
    size_bytes_ += n;
    bytes = bytes.subspan(n);
    if (at + n == block_.size()) detail::md5_block(state_, block_);
  }
  return *this;
}

inline std::string md5::hex() const {
  // The padding consists of a 1 bit, zeros, and the length in bits. The length takes the last eight
  // bytes of a block.
  std::array<std::byte, 72> tail{std::byte{0x80}};
  const std::size_t zeros = (119 - size_bytes_ % 64) % 64;
  for (std::size_t i = 0; i < 8; ++i) {
    tail[1 + zeros + i] = static_cast<std::byte>(size_bytes_ * 8 >> 8 * i & 0xFF);
  }
  md5 padded = *this;
  padded.update(std::span(tail).first(1 + zeros + 8));

  std::array<std::byte, 16> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::byte>(padded.state_[i / 4] >> i % 4 * 8 & 0xFF);
  }
  return formats::hex(digest);
}

}  // namespace millrace::formats
