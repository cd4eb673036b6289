// SPDX-License-Identifier: Apache-2.0
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {
namespace {

instruction_set widest() noexcept {
#ifdef __x86_64__
  const bool bmi = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (bmi && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2")) {
    return instruction_set::avx512;
  }
  if (bmi && __builtin_cpu_supports("avx2")) return instruction_set::avx2;
#endif
  return instruction_set::portable;
}

}  // namespace

instruction_set best_instruction_set() noexcept {
  static const instruction_set best = widest();
  return best;
}

bool can_run(instruction_set set) noexcept {
  return set <= best_instruction_set();
}

}  // namespace millrace::tokenizer::detail
