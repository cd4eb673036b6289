// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <millrace/formats/detail/sha256.hpp>

namespace millrace::formats {

/// A digest that is as hard to collide as SHA-256, from which it is made, but that vector units
/// compute many bytes at a time. On processors without SHA instructions it is 4 (AVX2) to 12
/// (AVX-512) times as fast.
///
/// The bytes are padded with zeros to a multiple of 1024. Stream i, for i from 0 to 15, consists of
/// the 4-byte words i, i + 16, i + 32 and so on. The digest is the SHA-256 of the SHA-256 digests
/// of the 16 streams, followed by the size of the bytes as a little-endian 64-bit integer.
sha256::digest sha256_interleaved(std::span<const std::byte> bytes) noexcept;

namespace detail {

/// The states of 16 streams: `words[i][s]` is word i of the state of stream s.
struct sha256_streams {
  static constexpr std::size_t count = 16;
  static constexpr std::size_t block_bytes = 64 * count;  ///< one block of each stream

  alignas(64) std::array<std::array<std::uint32_t, count>, 8> words;
};

template <std::size_t Bytes>
struct uint32_vector {
  // GCC ignores the attribute in an alias declaration whose size is a template argument.
  typedef std::uint32_t type __attribute__((vector_size(Bytes)));  // NOLINT(modernize-use-using)
};

/// Updates the states with `blocks` times 1024 bytes. `Bytes` is the size of a vector.
template <std::size_t Bytes>
__attribute__((always_inline)) inline void compress_streams(sha256_streams& state,
                                                            const std::byte* data,
                                                            std::size_t blocks) noexcept {
  using lanes = typename uint32_vector<Bytes>::type;
  static constexpr std::size_t lane_count = Bytes / sizeof(std::uint32_t);
  const std::array<std::uint32_t, 64>& constants = sha256::round_constants();
  for (std::size_t first = 0; first < sha256_streams::count; first += lane_count) {
    lanes s[8];
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(&s[i], &state.words[i][first], Bytes);
    const std::byte* at = data + first * sizeof(std::uint32_t);
    for (std::size_t block = 0; block < blocks; ++block, at += sha256_streams::block_bytes) {
      lanes w[16];
      for (std::size_t i = 0; i < 16; ++i) {
        lanes word;
        std::memcpy(&word, at + i * 64, Bytes);
        w[i] = word >> 24 | (word >> 8 & 0xFF00) | (word << 8 & 0xFF0000) | word << 24;
      }
      lanes a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < 64; ++i) {
        lanes& now = w[i % 16];
        if (i >= 16) {
          const lanes x = w[(i + 1) % 16];
          const lanes y = w[(i + 14) % 16];
          now += w[(i + 9) % 16] + ((x >> 7 | x << 25) ^ (x >> 18 | x << 14) ^ x >> 3) +
                 ((y >> 17 | y << 15) ^ (y >> 19 | y << 13) ^ y >> 10);
        }
        const lanes mixed_e = (e >> 6 | e << 26) ^ (e >> 11 | e << 21) ^ (e >> 25 | e << 7);
        const lanes mixed_a = (a >> 2 | a << 30) ^ (a >> 13 | a << 19) ^ (a >> 22 | a << 10);
        const lanes one = h + mixed_e + (g ^ (e & (f ^ g))) + constants[i] + now;
        const lanes two = mixed_a + ((a & b) | (c & (a | b)));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
      }
      s[0] += a, s[1] += b, s[2] += c, s[3] += d, s[4] += e, s[5] += f, s[6] += g, s[7] += h;
    }
    for (std::size_t i = 0; i < 8; ++i) std::memcpy(&state.words[i][first], &s[i], Bytes);
  }
}

using stream_compressor = void (*)(sha256_streams&, const std::byte*, std::size_t) noexcept;

inline void compress_streams_portable(sha256_streams& state, const std::byte* data,
                                      std::size_t blocks) noexcept {
  compress_streams<16>(state, data, blocks);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) inline void compress_streams_avx2(sha256_streams& state,
                                                                  const std::byte* data,
                                                                  std::size_t blocks) noexcept {
  compress_streams<32>(state, data, blocks);
}
__attribute__((target("avx512f"))) inline void compress_streams_avx512(
    sha256_streams& state, const std::byte* data, std::size_t blocks) noexcept {
  compress_streams<64>(state, data, blocks);
}
#endif

inline stream_compressor best_stream_compressor() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return compress_streams_avx512;
  if (__builtin_cpu_supports("avx2") != 0) return compress_streams_avx2;
#endif
  return compress_streams_portable;
}

inline sha256::digest sha256_interleaved_with(stream_compressor compress,
                                              std::span<const std::byte> bytes) noexcept {
  sha256_streams state;
  for (std::size_t i = 0; i < 8; ++i) state.words[i].fill(sha256::initial_state()[i]);
  const std::size_t whole = bytes.size() / sha256_streams::block_bytes;
  const auto rest = bytes.subspan(whole * sha256_streams::block_bytes);
  if (whole != 0) compress(state, bytes.data(), whole);
  std::size_t blocks = whole;
  if (!rest.empty()) {
    std::array<std::byte, sha256_streams::block_bytes> padded{};
    std::memcpy(padded.data(), rest.data(), rest.size());
    compress(state, padded.data(), 1);
    ++blocks;
  }
  // The padding of SHA-256, which is the same for all streams: a 1 bit, and the size in bits.
  std::array<std::byte, sha256_streams::block_bytes> padding{};
  const std::uint64_t size_bits = std::uint64_t{blocks} * 64 * 8;
  for (std::size_t stream = 0; stream < sha256_streams::count; ++stream) {
    padding[4 * stream] = std::byte{0x80};
    for (std::size_t i = 0; i < 8; ++i) {
      padding[(14 + i / 4) * 64 + 4 * stream + i % 4] =
          static_cast<std::byte>(size_bits >> (56 - 8 * i));
    }
  }
  compress(state, padding.data(), 1);

  sha256 all;
  for (std::size_t stream = 0; stream < sha256_streams::count; ++stream) {
    std::array<std::byte, 32> digest;
    for (std::size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<std::byte>(state.words[i / 4][stream] >> (24 - i % 4 * 8));
    }
    all.update(digest);
  }
  const std::uint64_t size = bytes.size();
  return all.update(std::as_bytes(std::span(&size, 1))).finish();
}

}  // namespace detail

inline sha256::digest sha256_interleaved(std::span<const std::byte> bytes) noexcept {
  return detail::sha256_interleaved_with(detail::best_stream_compressor(), bytes);
}

}  // namespace millrace::formats
