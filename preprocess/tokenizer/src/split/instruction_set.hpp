// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::tokenizer::detail {

/// The instruction sets that splitters are built for. The wider ones exist on x86-64 only.
enum class instruction_set : std::uint8_t {
  portable,  ///< plain C++, one character at a time
  avx2,      ///< AVX2, BMI1 and BMI2 (Haswell, Zen and later)
  avx512,    ///< AVX-512 with BW, DQ, VL, VBMI and VBMI2, BMI2 (Ice Lake, Zen 4 and later)
};

/// The widest instruction set that this machine supports. Queries the CPU once. Thread-safe.
instruction_set best_instruction_set() noexcept;

/// True if this machine and this build can run `set`.
bool can_run(instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
