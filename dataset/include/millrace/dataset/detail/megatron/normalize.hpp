// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Returns the same sum, bit for bit, as numpy.sum of a contiguous float64 array. Adds the values
/// pairwise, in numpy's order (numpy/_core/src/umath/loops_utils.h.src).
MILLRACE_EXPORT double numpy_sum(std::span<const double> values) noexcept;

/// Megatron's normalize(): divides every weight by numpy's sum of all weights.
///
/// Does not validate: a sum of 0 gives nan or inf, as in numpy.
inline std::vector<double> normalize(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> shares(weights.begin(), weights.end());
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace millrace::dataset
