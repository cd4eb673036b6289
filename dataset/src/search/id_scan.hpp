// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#endif

/// Finds the positions of ids in an array, 64 tokens at a time.
namespace millrace::dataset::detail {

enum class scan_set : std::uint8_t { portable, neon, avx2, avx512 };

inline bool can_scan(scan_set set) noexcept {
#if defined(__x86_64__)
  if (set == scan_set::avx512) {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0;
  }
  if (set == scan_set::avx2) return __builtin_cpu_supports("avx2") != 0;
#elif defined(__AARCH64EL__)
  if (set == scan_set::neon) return true;
#endif
  return set == scan_set::portable;
}

/// The set that the environment variable MILLRACE_ISA names, if this machine has it; else the
/// widest.
inline scan_set best_scan_set() noexcept {
  const char* const asked = std::getenv("MILLRACE_ISA");  // NOLINT(concurrency-mt-unsafe)
  const std::string_view name = asked == nullptr ? "" : asked;
  if (name == "portable") return scan_set::portable;
  if (name == "avx2" && can_scan(scan_set::avx2)) return scan_set::avx2;
  for (const scan_set set : {scan_set::avx512, scan_set::avx2, scan_set::neon}) {
    if (can_scan(set)) return set;
  }
  return scan_set::portable;
}

/// What to find: positions `at` with tokens[at] == first and tokens[at + gap] == second.
template <class T>
struct id_pair {
  T first = 0;
  T second = 0;
  std::ptrdiff_t gap = 0;
};

/// Writes the positions below `count` to `out`, which has room for `count`. Returns their number.
/// tokens[at] and tokens[at + gap] must be readable for each of these positions.
template <class T>
using scan_pairs = std::size_t (*)(const T* tokens, std::size_t count, id_pair<T> wanted,
                                   std::uint32_t* out);

template <class T>
std::size_t scan_rest(const T* tokens, std::size_t from, std::size_t count, id_pair<T> wanted,
                      std::uint32_t* out) {
  std::size_t found = 0;
  for (std::size_t at = from; at < count; ++at) {
    if (tokens[at] != wanted.first) continue;
    if (tokens[static_cast<std::ptrdiff_t>(at) + wanted.gap] != wanted.second) continue;
    out[found++] = static_cast<std::uint32_t>(at);
  }
  return found;
}

inline std::uint32_t* put_positions(std::uint64_t mask, std::size_t base, std::uint32_t* out) {
  for (; mask != 0; mask &= mask - 1) {
    *out++ = static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(std::countr_zero(mask));
  }
  return out;
}

template <class T>
std::size_t scan_pairs_portable(const T* tokens, std::size_t count, id_pair<T> wanted,
                                std::uint32_t* out) {
  std::uint32_t* end = out;
  std::size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    unsigned any = 0;  // a loop without a branch, so that compilers use vector instructions
    for (std::size_t i = 0; i < 64; ++i) any |= tokens[at + i] == wanted.first ? 1U : 0U;
    if (any == 0) continue;
    const std::size_t found = scan_rest(tokens + at, 0, 64, wanted, end);
    for (std::size_t i = 0; i < found; ++i) end[i] += static_cast<std::uint32_t>(at);
    end += found;
  }
  end += scan_rest(tokens, at, count, wanted, end);
  return static_cast<std::size_t>(end - out);
}

#if defined(__x86_64__)

#define MILLRACE_SCAN_AVX2 __attribute__((target("avx2")))
#define MILLRACE_SCAN_AVX512 __attribute__((target("avx512f,avx512bw")))

MILLRACE_SCAN_AVX2 inline __m256i load_avx2(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

MILLRACE_SCAN_AVX2 inline std::uint64_t bytes_avx2(__m256i low, __m256i high) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
         std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32;
}

/// Bit i tells whether token i is `id`.
MILLRACE_SCAN_AVX2 inline std::uint64_t equal64_avx2(const std::uint16_t* at, std::uint16_t id) {
  const __m256i wanted = _mm256_set1_epi16(static_cast<std::int16_t>(id));
  const __m256i a = _mm256_cmpeq_epi16(load_avx2(at), wanted);
  const __m256i b = _mm256_cmpeq_epi16(load_avx2(at + 16), wanted);
  const __m256i c = _mm256_cmpeq_epi16(load_avx2(at + 32), wanted);
  const __m256i d = _mm256_cmpeq_epi16(load_avx2(at + 48), wanted);
  // A pack works in each half of a register, so its quarters are out of order.
  return bytes_avx2(_mm256_permute4x64_epi64(_mm256_packs_epi16(a, b), 0xD8),
                    _mm256_permute4x64_epi64(_mm256_packs_epi16(c, d), 0xD8));
}

MILLRACE_SCAN_AVX2 inline __m256i equal32_avx2(const std::uint32_t* at, __m256i wanted) {
  const __m256i ab = _mm256_packs_epi32(_mm256_cmpeq_epi32(load_avx2(at), wanted),
                                        _mm256_cmpeq_epi32(load_avx2(at + 8), wanted));
  const __m256i cd = _mm256_packs_epi32(_mm256_cmpeq_epi32(load_avx2(at + 16), wanted),
                                        _mm256_cmpeq_epi32(load_avx2(at + 24), wanted));
  return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd),
                                     _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

MILLRACE_SCAN_AVX2 inline std::uint64_t equal64_avx2(const std::uint32_t* at, std::uint32_t id) {
  const __m256i wanted = _mm256_set1_epi32(static_cast<std::int32_t>(id));
  return bytes_avx2(equal32_avx2(at, wanted), equal32_avx2(at + 32, wanted));
}

template <class T>
MILLRACE_SCAN_AVX2 std::size_t scan_pairs_avx2(const T* tokens, std::size_t count,
                                               id_pair<T> wanted, std::uint32_t* out) {
  std::uint32_t* end = out;
  std::size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    std::uint64_t mask = equal64_avx2(tokens + at, wanted.first);
    if (mask == 0) continue;
    if (wanted.gap != 0) mask &= equal64_avx2(tokens + at + wanted.gap, wanted.second);
    end = put_positions(mask, at, end);
  }
  end += scan_rest(tokens, at, count, wanted, end);
  return static_cast<std::size_t>(end - out);
}

MILLRACE_SCAN_AVX512 inline std::uint64_t equal64_avx512(const std::uint16_t* at,
                                                         std::uint16_t id) {
  const __m512i wanted = _mm512_set1_epi16(static_cast<std::int16_t>(id));
  const std::uint64_t low = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(at), wanted);
  const std::uint64_t high = _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(at + 32), wanted);
  return low | high << 32;
}

MILLRACE_SCAN_AVX512 inline std::uint64_t equal64_avx512(const std::uint32_t* at,
                                                         std::uint32_t id) {
  const __m512i wanted = _mm512_set1_epi32(static_cast<std::int32_t>(id));
  const std::uint64_t a = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(at), wanted);
  const std::uint64_t b = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(at + 16), wanted);
  const std::uint64_t c = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(at + 32), wanted);
  const std::uint64_t d = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(at + 48), wanted);
  return a | b << 16 | c << 32 | d << 48;
}

template <class T>
MILLRACE_SCAN_AVX512 std::size_t scan_pairs_avx512(const T* tokens, std::size_t count,
                                                   id_pair<T> wanted, std::uint32_t* out) {
  std::uint32_t* end = out;
  std::size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    std::uint64_t mask = equal64_avx512(tokens + at, wanted.first);
    if (mask == 0) continue;
    if (wanted.gap != 0) mask &= equal64_avx512(tokens + at + wanted.gap, wanted.second);
    end = put_positions(mask, at, end);
  }
  end += scan_rest(tokens, at, count, wanted, end);
  return static_cast<std::size_t>(end - out);
}

#undef MILLRACE_SCAN_AVX2
#undef MILLRACE_SCAN_AVX512

#elif defined(__AARCH64EL__)

/// Bits 4 i to 4 i + 3 tell whether byte i is set.
inline std::uint64_t nibbles_neon(uint8x16_t bytes) {
  return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4)), 0);
}

inline std::uint64_t equal16_neon(const std::uint16_t* at, std::uint16_t id) {
  const uint16x8_t wanted = vdupq_n_u16(id);
  return nibbles_neon(vcombine_u8(vmovn_u16(vceqq_u16(vld1q_u16(at), wanted)),
                                  vmovn_u16(vceqq_u16(vld1q_u16(at + 8), wanted))));
}

inline std::uint64_t equal16_neon(const std::uint32_t* at, std::uint32_t id) {
  const uint32x4_t wanted = vdupq_n_u32(id);
  const uint16x8_t low = vcombine_u16(vmovn_u32(vceqq_u32(vld1q_u32(at), wanted)),
                                      vmovn_u32(vceqq_u32(vld1q_u32(at + 4), wanted)));
  const uint16x8_t high = vcombine_u16(vmovn_u32(vceqq_u32(vld1q_u32(at + 8), wanted)),
                                       vmovn_u32(vceqq_u32(vld1q_u32(at + 12), wanted)));
  return nibbles_neon(vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
}

template <class T>
std::size_t scan_pairs_neon(const T* tokens, std::size_t count, id_pair<T> wanted,
                            std::uint32_t* out) {
  std::uint32_t* end = out;
  std::size_t at = 0;
  for (; at + 16 <= count; at += 16) {
    std::uint64_t mask = equal16_neon(tokens + at, wanted.first);
    if (mask == 0) continue;
    if (wanted.gap != 0) mask &= equal16_neon(tokens + at + wanted.gap, wanted.second);
    for (mask &= 0x1111111111111111U; mask != 0; mask &= mask - 1) {
      *end++ =
          static_cast<std::uint32_t>(at) + static_cast<std::uint32_t>(std::countr_zero(mask)) / 4;
    }
  }
  end += scan_rest(tokens, at, count, wanted, end);
  return static_cast<std::size_t>(end - out);
}

#endif

/// @pre can_scan(set)
template <class T>
scan_pairs<T> scan_pairs_with(scan_set set) noexcept {
  static_cast<void>(set);
  if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
#if defined(__x86_64__)
    if (set == scan_set::avx512) return scan_pairs_avx512<T>;
    if (set == scan_set::avx2) return scan_pairs_avx2<T>;
#elif defined(__AARCH64EL__)
    if (set == scan_set::neon) return scan_pairs_neon<T>;
#endif
  }
  return scan_pairs_portable<T>;
}

/// Writes the positions below `count` whose ids have a flag that is not 0. `out` has room for one
/// more. Ids of one or two bytes each have a flag. Of others, all ids from `last` on share the flag
/// of `last`.
template <class T>
std::size_t scan_flags(const T* tokens, std::size_t count, const std::uint8_t* flags, T last,
                       std::uint32_t* out) {
  const auto flag = [&](std::size_t at) {
    if constexpr (sizeof(T) <= 2) {
      return flags[tokens[at]];
    } else {
      return flags[std::min(tokens[at], last)];
    }
  };
  std::uint32_t* end = out;
  std::size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    const unsigned any = static_cast<unsigned>(flag(at)) | flag(at + 1) | flag(at + 2) |
                         flag(at + 3) | flag(at + 4) | flag(at + 5) | flag(at + 6) | flag(at + 7);
    if (any == 0) continue;
    for (std::size_t i = at; i < at + 8; ++i) {
      *end = static_cast<std::uint32_t>(i);
      end += flag(i) != 0 ? 1 : 0;
    }
  }
  for (; at < count; ++at) {
    if (flag(at) != 0) *end++ = static_cast<std::uint32_t>(at);
  }
  return static_cast<std::size_t>(end - out);
}

}  // namespace millrace::dataset::detail
