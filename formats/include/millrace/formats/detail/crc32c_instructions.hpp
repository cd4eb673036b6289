// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__AARCH64EL__) && defined(__linux__) && \
    (!defined(__clang__) || defined(__ARM_FEATURE_CRC32))
#include <arm_acle.h>
#include <arm_neon.h>
#include <sys/auxv.h>
#ifdef __clang__  // version 14 has no intrinsics for what its command line does not name
#define MILLRACE_CRC32C __attribute__((target("crc,aes")))
#else
#define MILLRACE_CRC32C __attribute__((target("+crc+crypto")))
#endif
#endif

namespace millrace::formats {

/// CRC-32C with the processor's own instructions: crc32 from SSE4.2, and PCLMULQDQ to join streams;
/// or CRC32CX and PMULL on AArch64, where both are optional.
///
/// A crc32 instruction processes 8 bytes. One instruction can start per cycle, but its result is
/// available only three cycles later. So three streams run in parallel, over three consecutive
/// parts of the input.
class crc32c_instructions {
 public:
  static bool are_there() noexcept {
#if defined(__x86_64__)
    static const bool found =
        __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
    return found;
#elif defined(MILLRACE_CRC32C)
    constexpr unsigned long both = 1UL << 4 | 1UL << 7;  // HWCAP_PMULL, HWCAP_CRC32
    static const bool found = (getauxval(AT_HWCAP) & both) == both;
    return found;
#else
    return false;
#endif
  }

  /// Returns true if fold_down() can be used: the processor has AVX-512 and VPCLMULQDQ, which
  /// multiply 64 bytes per instruction. For bytes in the cache, fold_down() is 1.5 to 2 times as
  /// fast as update().
  static bool are_wide() noexcept {
#if defined(__x86_64__)
    static const bool found = are_there() && __builtin_cpu_supports("avx512f") != 0 &&
                              __builtin_cpu_supports("vpclmulqdq") != 0;
    return found;
#else
    return false;
#endif
  }

  /// Bytes per step of fold_down().
  static constexpr std::size_t fold_bytes = 256;
  /// The powers of x that move the two halves of 16 bytes forward by `fold_bytes`.
  struct fold {
    std::uint64_t first;   ///< for the first 8 bytes, the coefficients of x^127 to x^64
    std::uint64_t second;  ///< for the last 8 bytes, the coefficients of x^63 to x^0
  };

  /// Reduces `size` bytes of `data` to `fold_bytes` bytes in `out`. The CRC of `out`, computed from
  /// a register of 0, equals the CRC of `data`, computed from a register of `crc`.
  ///
  /// @pre are_wide(); size is a multiple of fold_bytes, and not 0
  static void fold_down(std::uint32_t crc, const std::byte* data, std::size_t size, fold by,
                        std::byte* out) noexcept;

  /// The length of each of the three streams before they are joined.
  struct lane {
    std::size_t bytes;
    std::uint32_t power;  ///< x^(8 * bytes)
  };

  /// Returns the register after `size` more bytes. Does not invert it at the start or at the end.
  /// Reads three streams of length `wide` as often as possible, then three streams of length
  /// `narrow`, then the rest as a single stream.
  ///
  /// @pre are_there(); the lengths of the lanes are multiples of 8
  static std::uint32_t update(std::uint32_t crc, const std::byte* data, std::size_t size, lane wide,
                              lane narrow) noexcept;

  /// The product of two reflected polynomials, modulo the polynomial of CRC-32C.
  ///
  /// @pre are_there()
  static std::uint32_t multiply(std::uint32_t a, std::uint32_t b) noexcept;

 private:
  static std::uint32_t update_three(std::uint32_t crc, const std::byte* data, lane each) noexcept;
};

#if defined(__x86_64__)
__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_instructions::multiply(
    std::uint32_t a, std::uint32_t b) noexcept {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<std::int64_t>(a)),
                                               _mm_cvtsi64_si128(static_cast<std::int64_t>(b)), 0);
  // The product has 63 bits. After a shift by one, its high half holds the coefficients of x^31 to
  // x^0. Its low half holds the coefficients of x^63 to x^32, which the crc32 instruction reduces.
  const std::uint64_t wide = static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)) << 1;
  return _mm_crc32_u32(0, static_cast<std::uint32_t>(wide)) ^
         static_cast<std::uint32_t>(wide >> 32);
}

__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_instructions::update_three(
    std::uint32_t crc, const std::byte* data, lane each) noexcept {
  const auto load = [](const std::byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  std::uint64_t first = crc, second = 0, third = 0;
  for (std::size_t i = 0; i < each.bytes; i += 8) {
    first = _mm_crc32_u64(first, load(data + i));
    second = _mm_crc32_u64(second, load(data + each.bytes + i));
    third = _mm_crc32_u64(third, load(data + 2 * each.bytes + i));
  }
  const std::uint32_t two =
      multiply(static_cast<std::uint32_t>(first), each.power) ^ static_cast<std::uint32_t>(second);
  return multiply(two, each.power) ^ static_cast<std::uint32_t>(third);
}

__attribute__((target("sse4.2,pclmul"))) inline std::uint32_t crc32c_instructions::update(
    std::uint32_t crc, const std::byte* data, std::size_t size, lane wide, lane narrow) noexcept {
  for (const lane each : {wide, narrow}) {
    for (; size >= 3 * each.bytes; data += 3 * each.bytes, size -= 3 * each.bytes) {
      crc = update_three(crc, data, each);
    }
  }
  std::uint64_t rest = crc;
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t value;
    std::memcpy(&value, data, sizeof(value));
    rest = _mm_crc32_u64(rest, value);
  }
  crc = static_cast<std::uint32_t>(rest);
  for (; size != 0; ++data, --size) {
    crc = _mm_crc32_u8(crc, std::to_integer<std::uint8_t>(*data));
  }
  return crc;
}

__attribute__((target("avx512f,vpclmulqdq"))) inline void crc32c_instructions::fold_down(
    std::uint32_t crc, const std::byte* data, std::size_t size, fold by, std::byte* out) noexcept {
  const auto low = static_cast<std::int64_t>(by.first);
  const auto high = static_cast<std::int64_t>(by.second);
  const __m512i keys = _mm512_set_epi64(high, low, high, low, high, low, high, low);
  __m512i four[4];
  for (std::size_t i = 0; i < 4; ++i) four[i] = _mm512_loadu_si512(data + 64 * i);
  // Combine the register with the first 4 bytes, as the crc32 instruction does.
  four[0] = _mm512_xor_si512(
      four[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<std::int32_t>(crc))));
  for (std::size_t at = fold_bytes; at < size; at += fold_bytes) {
    for (std::size_t i = 0; i < 4; ++i) {
      const __m512i first = _mm512_clmulepi64_epi128(four[i], keys, 0x00);
      const __m512i second = _mm512_clmulepi64_epi128(four[i], keys, 0x11);
      const __m512i next = _mm512_loadu_si512(data + at + 64 * i);
      // Exclusive or of all three values.
      four[i] = _mm512_ternarylogic_epi64(first, second, next, 0x96);
    }
  }
  for (std::size_t i = 0; i < 4; ++i) _mm512_storeu_si512(out + 64 * i, four[i]);
}
#elif defined(MILLRACE_CRC32C)
MILLRACE_CRC32C inline std::uint32_t crc32c_instructions::multiply(std::uint32_t a,
                                                                   std::uint32_t b) noexcept {
  // As on x86-64: the CRC instruction reduces the coefficients of x^63 to x^32.
  const std::uint64_t wide = static_cast<std::uint64_t>(vmull_p64(a, b)) << 1;
  return __crc32cw(0, static_cast<std::uint32_t>(wide)) ^ static_cast<std::uint32_t>(wide >> 32);
}

MILLRACE_CRC32C inline std::uint32_t crc32c_instructions::update_three(std::uint32_t crc,
                                                                       const std::byte* data,
                                                                       lane each) noexcept {
  const auto load = [](const std::byte* at) {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  std::uint32_t second = 0, third = 0;
  for (std::size_t i = 0; i < each.bytes; i += 8) {
    crc = __crc32cd(crc, load(data + i));
    second = __crc32cd(second, load(data + each.bytes + i));
    third = __crc32cd(third, load(data + 2 * each.bytes + i));
  }
  return multiply(multiply(crc, each.power) ^ second, each.power) ^ third;
}

MILLRACE_CRC32C inline std::uint32_t crc32c_instructions::update(std::uint32_t crc,
                                                                 const std::byte* data,
                                                                 std::size_t size, lane wide,
                                                                 lane narrow) noexcept {
  for (const lane each : {wide, narrow}) {
    for (; size >= 3 * each.bytes; data += 3 * each.bytes, size -= 3 * each.bytes) {
      crc = update_three(crc, data, each);
    }
  }
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t value;
    std::memcpy(&value, data, sizeof(value));
    crc = __crc32cd(crc, value);
  }
  for (; size != 0; ++data, --size) crc = __crc32cb(crc, std::to_integer<std::uint8_t>(*data));
  return crc;
}

inline void crc32c_instructions::fold_down(std::uint32_t, const std::byte*, std::size_t, fold,
                                           std::byte*) noexcept {}
#undef MILLRACE_CRC32C
#else
inline void crc32c_instructions::fold_down(std::uint32_t, const std::byte*, std::size_t, fold,
                                           std::byte*) noexcept {}
inline std::uint32_t crc32c_instructions::update(std::uint32_t crc, const std::byte*, std::size_t,
                                                 lane, lane) noexcept {
  return crc;
}
inline std::uint32_t crc32c_instructions::multiply(std::uint32_t, std::uint32_t) noexcept {
  return 0;
}
#endif

}  // namespace millrace::formats
