// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace millrace::tokenizer::detail {

/// The instruction sets that the hot loops are written for, those of one architecture narrowest
/// first. Ids do not depend on the set.
enum class instruction_set : std::uint8_t {
  portable,  ///< plain C++, one character at a time
  neon,      ///< the vectors of every AArch64 processor, if it is little-endian
  avx2,      ///< x86-64 with AVX2, BMI1, BMI2 and AES (Haswell, Zen and later)
  avx512,    ///< AVX-512 with BW, DQ, VL, VBMI and VBMI2, and BMI2 and AES (Ice Lake, Zen 4 and
             ///< later)
};

/// True if this machine and this build can run `set`.
bool can_run(instruction_set set) noexcept;

/// The set that `name`, a value of the environment variable MILLRACE_ISA, asks for. The widest set
/// that can run if the name is null or empty, or names no set that can run.
instruction_set instruction_set_for(const char* name) noexcept;

/// Says what is wrong with a value of MILLRACE_ISA: it names no set, or one that cannot run here.
/// Empty if nothing is wrong.
std::string fault_of_isa(const char* name);

/// The value of MILLRACE_ISA, or null.
const char* isa_variable() noexcept;

/// instruction_set_for(isa_variable()), read once. Thread-safe.
instruction_set best_instruction_set() noexcept;

}  // namespace millrace::tokenizer::detail
