// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::dataset {

/// Contiguous tokens of one sequence. In every order, samples consist of pieces.
struct piece {
  std::int64_t sequence;  ///< index of the sequence in the `.idx`
  std::int64_t first;     ///< offset of the first token in the sequence
  std::int64_t tokens;    ///< number of tokens; may be 0

  friend bool operator==(const piece&, const piece&) = default;
};

}  // namespace millrace::dataset
