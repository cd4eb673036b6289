// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__AARCH64EL__) && defined(__linux__) && \
    (!defined(__clang__) || defined(__ARM_FEATURE_SHA2))
#include <arm_neon.h>
#include <sys/auxv.h>
#ifdef __clang__  // version 14 has no intrinsics for what its command line does not name
#define MILLRACE_SHA256 __attribute__((target("sha2")))
#else
#define MILLRACE_SHA256 __attribute__((target("+crypto")))
#endif
#endif

namespace millrace::formats {

/// The rounds of SHA-256, computed with the processor's own instructions (the SHA
/// extensions of x86-64 and of AArch64).
class sha256_instructions {
 public:
  static bool are_there() noexcept {
#if defined(__x86_64__)
    static const bool found = [] {
      unsigned a = 0, b = 0, c = 0, d = 0;
      if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (b >> 29 & 1) == 0) return false;
      return __builtin_cpu_supports("sse4.1") != 0;
    }();
    return found;
#elif defined(MILLRACE_SHA256)
    static const bool found = (getauxval(AT_HWCAP) & 1UL << 6) != 0;  // HWCAP_SHA2
    return found;
#else
    return false;
#endif
  }

  /// Updates `state` with `count` blocks of 64 bytes.
  /// @pre are_there()
  static void compress(std::array<std::uint32_t, 8>& state,
                       const std::array<std::uint32_t, 64>& constants, const std::byte* blocks,
                       std::size_t count) noexcept;
};

#if defined(__x86_64__)
__attribute__((target("sha,sse4.1"))) inline void sha256_instructions::compress(
    std::array<std::uint32_t, 8>& state, const std::array<std::uint32_t, 64>& constants,
    const std::byte* blocks, std::size_t count) noexcept {
  const auto load = [](const void* at) __attribute__((always_inline, target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
  // The instructions take a, b, e, f in one register and c, d, g, h in another, with a and c in the
  // highest lanes.
  const __m128i badc = _mm_shuffle_epi32(load(&state[0]), 0xB1);
  const __m128i hgfe = _mm_shuffle_epi32(load(&state[4]), 0x1B);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
  for (; count != 0; --count, blocks += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];  // the next sixteen words of the message schedule
    for (std::size_t i = 0; i < 4; ++i) {
      words[i] = _mm_shuffle_epi8(load(blocks + 16 * i), big_endian);
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      __m128i& now = words[i % 4];
      const __m128i sum = _mm_add_epi32(now, load(&constants[4 * i]));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
      const __m128i last = words[(i + 3) % 4];
      const __m128i seven_back = _mm_alignr_epi8(last, words[(i + 2) % 4], 4);
      now = _mm_sha256msg1_epu32(now, words[(i + 1) % 4]);
      now = _mm_sha256msg2_epu32(_mm_add_epi32(now, seven_back), last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  const auto store =
      [](void* at, __m128i value) __attribute__((always_inline, target("sha,sse4.1"))) {
    _mm_storeu_si128(static_cast<__m128i*>(at), value);
  };
  store(&state[0], _mm_blend_epi16(feba, dchg, 0xF0));
  store(&state[4], _mm_alignr_epi8(dchg, feba, 8));
}
#elif defined(MILLRACE_SHA256)
MILLRACE_SHA256 inline void sha256_instructions::compress(
    std::array<std::uint32_t, 8>& state, const std::array<std::uint32_t, 64>& constants,
    const std::byte* blocks, std::size_t count) noexcept {
  uint32x4_t abcd = vld1q_u32(&state[0]);
  uint32x4_t efgh = vld1q_u32(&state[4]);
  for (; count != 0; --count, blocks += 64) {
    const uint32x4_t abcd_before = abcd;
    const uint32x4_t efgh_before = efgh;
    uint32x4_t words[4];  // the next sixteen words of the message schedule
    for (std::size_t i = 0; i < 4; ++i) {
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(blocks + 16 * i);
      words[i] = vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes)));
    }
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 16; ++i) {
      uint32x4_t& now = words[i % 4];
      const uint32x4_t sum = vaddq_u32(now, vld1q_u32(&constants[4 * i]));
      const uint32x4_t abcd_now = abcd;
      abcd = vsha256hq_u32(abcd, efgh, sum);
      efgh = vsha256h2q_u32(efgh, abcd_now, sum);
      now = vsha256su1q_u32(vsha256su0q_u32(now, words[(i + 1) % 4]), words[(i + 2) % 4],
                            words[(i + 3) % 4]);
    }
    abcd = vaddq_u32(abcd, abcd_before);
    efgh = vaddq_u32(efgh, efgh_before);
  }
  vst1q_u32(&state[0], abcd);
  vst1q_u32(&state[4], efgh);
}
#undef MILLRACE_SHA256
#else
inline void sha256_instructions::compress(std::array<std::uint32_t, 8>&,
                                          const std::array<std::uint32_t, 64>&, const std::byte*,
                                          std::size_t) noexcept {}
#endif

}  // namespace millrace::formats
