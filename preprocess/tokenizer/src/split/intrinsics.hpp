// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Includes the vector intrinsics of x86-64 or of AArch64, the former without their warnings. GCC
/// 12 warns about its own header, because the header leaves some operands undefined on purpose.
#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// The attribute of functions that run only if can_run(instruction_set::avx512). It names their
/// instruction sets, whose instructions a compiler may also use on its own. So a build that
/// emulates VBMI does not name VBMI.
#define MILLRACE_AVX512_BASE "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,lzcnt,popcnt"
#ifndef MILLRACE_EMULATE_VBMI
#define MILLRACE_AVX512 gnu::target(MILLRACE_AVX512_BASE ",avx512vbmi,avx512vbmi2")
#else
#define MILLRACE_AVX512 gnu::target(MILLRACE_AVX512_BASE)

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

/// The intrinsics of VBMI and VBMI2 that the tokenizers use, one byte at a time, for tests on a
/// processor that has the rest of AVX-512. An intrinsic without an emulation does not compile.
namespace millrace::tokenizer::detail::emulated_vbmi {

using bytes = std::array<std::uint8_t, 64>;

[[MILLRACE_AVX512]] inline bytes bytes_of(__m512i vector) noexcept {
  bytes result;
  _mm512_storeu_si512(result.data(), vector);
  return result;
}

[[MILLRACE_AVX512]] inline __m512i vector_of(const bytes& from) noexcept {
  return _mm512_loadu_si512(from.data());
}

[[MILLRACE_AVX512]] inline __m512i mask_permutexvar(__m512i otherwise, std::uint64_t mask,
                                                    __m512i index, __m512i table) noexcept {
  bytes result = bytes_of(otherwise);
  const bytes indices = bytes_of(index);
  const bytes from = bytes_of(table);
  for (std::size_t i = 0; i < 64; ++i) {
    if ((mask >> i & 1) != 0) result[i] = from[indices[i] % 64];
  }
  return vector_of(result);
}

[[MILLRACE_AVX512]] inline __m512i permutex2var(__m512i low, __m512i index, __m512i high) noexcept {
  const std::array<bytes, 2> from = {bytes_of(low), bytes_of(high)};
  bytes result = bytes_of(index);
  for (std::uint8_t& each : result) each = from[each / 64 % 2][each % 64];
  return vector_of(result);
}

[[MILLRACE_AVX512]] inline __m512i maskz_compress(std::uint64_t mask, __m512i vector) noexcept {
  const bytes from = bytes_of(vector);
  bytes result{};
  std::size_t count = 0;
  for (; mask != 0; mask &= mask - 1) {
    result[count++] = from[static_cast<std::size_t>(std::countr_zero(mask))];
  }
  return vector_of(result);
}

}  // namespace millrace::tokenizer::detail::emulated_vbmi

// The names are those of the compiler, for which these stand.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
#define _mm512_mask_permutexvar_epi8 ::millrace::tokenizer::detail::emulated_vbmi::mask_permutexvar
#define _mm512_permutex2var_epi8 ::millrace::tokenizer::detail::emulated_vbmi::permutex2var
#define _mm512_maskz_compress_epi8 ::millrace::tokenizer::detail::emulated_vbmi::maskz_compress
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
#endif
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#endif
