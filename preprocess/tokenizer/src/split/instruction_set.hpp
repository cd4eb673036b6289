// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::tokenizer::detail {

/// What the splitters can be run on. The wider ones are there on x86-64 alone.
enum class instruction_set : std::uint8_t {
  portable,  ///< plain C++, a character at a time
  avx2,      ///< AVX2, BMI1 and BMI2 (Haswell, Zen and later)
  avx512,    ///< AVX-512 with BW, VL, VBMI and VBMI2, BMI2 (Ice Lake, Zen 4 and later)
};

/// The widest one that this machine runs; asked of the processor once. Thread safe.
instruction_set best_instruction_set() noexcept;

/// Whether this machine, and this build, can run `set`.
bool can_run(instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
