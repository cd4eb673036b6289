// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// What changes the speed and the memory of an engine, never ids.
struct engine_tuning {
  /// Size of the pretoken cache that all encoders of the engine share. The first encoder makes it.
  std::size_t shared_bytes = std::size_t{48} << 20;
  instruction_set set = best_instruction_set();
};

}  // namespace millrace::tokenizer::detail
