// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::dataset {

/// Sequences [first, last).
struct sequence_range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const noexcept { return last - first; }
  friend bool operator==(const sequence_range&, const sequence_range&) = default;
};

}  // namespace millrace::dataset
