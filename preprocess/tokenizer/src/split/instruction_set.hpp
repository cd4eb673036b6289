// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace::tokenizer::detail {

/// The instruction sets that the hot loops are written for, narrowest first. The wider ones exist
/// on x86-64 only. Ids do not depend on the set.
enum class instruction_set : std::uint8_t {
  portable,  ///< plain C++, one character at a time
  avx2,      ///< AVX2, BMI1 and BMI2 (Haswell, Zen and later)
  avx512,    ///< AVX-512 with BW, DQ, VL, VBMI and VBMI2, BMI2 (Ice Lake, Zen 4 and later)
};

/// True if this machine and this build can run `set`.
bool can_run(instruction_set set) noexcept;

/// The widest instruction set that can run, or the one that the environment variable MILLRACE_ISA
/// names. Reads both once. Thread-safe.
instruction_set best_instruction_set() noexcept;

/// Says what is wrong with the value of MILLRACE_ISA: it names no set, or one that cannot run here.
/// Empty if nothing is wrong.
std::string fault_of_isa_variable();

}  // namespace millrace::tokenizer::detail
