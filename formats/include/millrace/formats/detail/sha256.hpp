// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/sha256_instructions.hpp>

namespace millrace::formats {

/// SHA-256 (FIPS 180-4) of bytes that are passed in any number of pieces.
///
/// Meant for fingerprints and checksums of files, not for secrets: its time may depend on the
/// bytes. Uses the processor's SHA instructions if there are any; they are several times as fast.
class sha256 {
 public:
  using digest = std::array<std::uint8_t, 32>;

  enum class instructions { if_there, never };
  explicit sha256(instructions use = instructions::if_there) noexcept
      : uses_instructions_(use == instructions::if_there && sha256_instructions::are_there()) {}

  sha256& update(std::span<const std::byte> bytes) noexcept;
  sha256& update(std::string_view text) noexcept { return update(std::as_bytes(std::span(text))); }

  /// The digest of all bytes passed so far. More bytes may follow.
  digest finish() const noexcept;

  /// The same digest as 64 lower-case hexadecimal digits.
  std::string hex() const;

  /// The constants of FIPS 180-4, for other code that computes SHA-256.
  static constexpr std::array<std::uint32_t, 8> initial_state() noexcept {
    return {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  }
  static const std::array<std::uint32_t, 64>& round_constants() noexcept;

 private:
  static constexpr std::size_t block_bytes = 64;
  void compress(const std::byte* blocks, std::size_t count) noexcept;
  void compress_portable(const std::byte* block) noexcept;

  std::array<std::uint32_t, 8> state_ = initial_state();
  std::array<std::byte, block_bytes> pending_{};  // the first size_bytes_ % 64 bytes are in use
  std::uint64_t size_bytes_ = 0;
  bool uses_instructions_;
};

/// SHA-256 of `bytes` as 64 lower-case hexadecimal digits.
inline std::string sha256_hex(std::span<const std::byte> bytes) {
  return sha256().update(bytes).hex();
}
inline std::string sha256_hex(std::string_view text) {
  return sha256().update(text).hex();
}

inline sha256& sha256::update(std::span<const std::byte> bytes) noexcept {
  const std::size_t used = size_bytes_ % block_bytes;
  size_bytes_ += bytes.size();
  if (used != 0) {
    const std::size_t taken = std::min(bytes.size(), block_bytes - used);
    std::copy_n(bytes.begin(), taken, pending_.begin() + used);
    if (used + taken < block_bytes) return *this;
    compress(pending_.data(), 1);
    bytes = bytes.subspan(taken);
  }
  const std::size_t blocks = bytes.size() / block_bytes;
  compress(bytes.data(), blocks);
  bytes = bytes.subspan(blocks * block_bytes);
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  return *this;
}

inline sha256::digest sha256::finish() const noexcept {
  // The padding consists of a 1 bit, zeros, and the length in bits. The length takes the last eight
  // bytes of a block.
  sha256 padded = *this;
  std::array<std::byte, block_bytes + 8> tail{std::byte{0x80}};
  const std::size_t used = size_bytes_ % block_bytes;
  const std::size_t length_at = (used < 56 ? 56 : 120) - used;
  const std::uint64_t size_bits = size_bytes_ * 8;
  for (std::size_t i = 0; i < 8; ++i) {
    tail[length_at + i] = static_cast<std::byte>(size_bits >> (56 - 8 * i));
  }
  padded.update(std::span(tail).first(length_at + 8));

  digest result;
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::uint8_t>(padded.state_[i / 4] >> (24 - i % 4 * 8));
  }
  return result;
}

inline std::string sha256::hex() const {
  const digest result = finish();
  return formats::hex(std::as_bytes(std::span(result)));
}

inline void sha256::compress(const std::byte* blocks, std::size_t count) noexcept {
  if (uses_instructions_) {
    sha256_instructions::compress(state_, round_constants(), blocks, count);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) compress_portable(blocks + i * block_bytes);
}

inline void sha256::compress_portable(const std::byte* block) noexcept {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::to_integer<std::uint32_t>(block[4 * i]) << 24 |
           std::to_integer<std::uint32_t>(block[4 * i + 1]) << 16 |
           std::to_integer<std::uint32_t>(block[4 * i + 2]) << 8 |
           std::to_integer<std::uint32_t>(block[4 * i + 3]);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
    const std::uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + low + w[i - 7] + high;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t mixed_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t mixed_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t first = h + mixed_e + ((e & f) ^ (~e & g)) + round_constants()[i] + w[i];
    const std::uint32_t second = mixed_a + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const std::array<std::uint32_t, 8> change = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += change[i];
}

inline const std::array<std::uint32_t, 64>& sha256::round_constants() noexcept {
  static constexpr std::array<std::uint32_t, 64> constants = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};
  return constants;
}

}  // namespace millrace::formats
