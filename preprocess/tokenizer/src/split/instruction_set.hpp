// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::tokenizer::detail {

/// What a hot loop is written for. Every set gives the same results; tests force each in turn.
enum class instruction_set : std::uint8_t { portable, avx2, avx512 };

/// The widest that this machine has.
inline instruction_set best_instruction_set() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vbmi")) {
    return instruction_set::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) {
    return instruction_set::avx2;
  }
#endif
  return instruction_set::portable;
}

}  // namespace millrace::tokenizer::detail
