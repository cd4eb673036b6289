// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::dataset {

/// A run of tokens inside one sequence: what samples are made of, in any order of a dataset.
struct piece {
  std::int64_t sequence;  ///< its number in the `.idx`
  std::int64_t first;     ///< the first token, counted from the start of the sequence
  std::int64_t tokens;    ///< how many; 0 is allowed

  friend bool operator==(const piece&, const piece&) = default;
};

}  // namespace millrace::dataset
