// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace millrace::test {

/// MD5 (RFC 1321) in hexadecimal: the reference token streams are kept as that.
class md5 {
 public:
  md5& update(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      block_[size_bytes_++ % block_.size()] = byte;
      if (size_bytes_ % block_.size() == 0) compress();
    }
    return *this;
  }

  std::string hex() const {
    md5 padded = *this;
    const std::uint64_t size_bits = size_bytes_ * 8;
    const std::byte one{0x80};
    const std::byte zero{0};
    padded.update({&one, 1});
    while (padded.size_bytes_ % block_.size() != 56) padded.update({&zero, 1});
    padded.update(std::as_bytes(std::span(&size_bits, 1)));

    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const std::byte byte : std::as_bytes(std::span(padded.state_))) {
      text += digits[std::to_integer<unsigned>(byte >> 4)];
      text += digits[std::to_integer<unsigned>(byte & std::byte{15})];
    }
    return text;
  }

 private:
  void compress() {
    static const std::array<std::uint32_t, 64> sines = [] {
      std::array<std::uint32_t, 64> values;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double sine = std::fabs(std::sin(static_cast<double>(i + 1)));
        values[i] = static_cast<std::uint32_t>(std::ldexp(sine, 32));
      }
      return values;
    }();
    static constexpr int turns[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    std::array<std::uint32_t, 16> words;
    std::memcpy(words.data(), block_.data(), block_.size());
    auto [a, b, c, d] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      std::uint32_t mixed = 0;
      std::size_t word = 0;
      switch (i / 16) {
        case 0:
          mixed = (b & c) | (~b & d), word = i;
          break;
        case 1:
          mixed = (d & b) | (~d & c), word = (5 * i + 1) % 16;
          break;
        case 2:
          mixed = b ^ c ^ d, word = (3 * i + 5) % 16;
          break;
        default:
          mixed = c ^ (b | ~d), word = 7 * i % 16;
          break;
      }
      const std::uint32_t turned =
          b + std::rotl(a + mixed + sines[i] + words[word], turns[i / 16][i % 4]);
      a = d;
      d = c;
      c = b;
      b = turned;
    }
    state_[0] += a;
    state_[1] += b;
    state_[2] += c;
    state_[3] += d;
  }

  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::byte, 64> block_{};
  std::uint64_t size_bytes_ = 0;
};

}  // namespace millrace::test
