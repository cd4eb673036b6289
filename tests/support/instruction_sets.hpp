// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/instruction_set.hpp"

namespace millrace::test {

/// All instruction sets for which the tokenizers have code. Before a test uses a set, it must check
/// with `can_run` that this machine supports it.
inline constexpr tokenizer::detail::instruction_set instruction_sets[] = {
    tokenizer::detail::instruction_set::portable, tokenizer::detail::instruction_set::neon,
    tokenizer::detail::instruction_set::avx2, tokenizer::detail::instruction_set::avx512};

}  // namespace millrace::test
