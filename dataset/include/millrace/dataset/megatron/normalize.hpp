// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace millrace::dataset {

/// numpy.sum of a contiguous float64 array, to the last bit: pairwise, in numpy's order of
/// additions (numpy/_core/src/umath/loops_utils.h.src).
inline double numpy_sum(std::span<const double> values) noexcept;

/// Megatron's normalize(): every weight divided by numpy's sum of them.
///
/// It does not judge: a sum of 0 gives nan or inf, as numpy's does.
inline std::vector<double> normalize(std::span<const double> weights) {
  const double sum = numpy_sum(weights);
  std::vector<double> shares(weights.begin(), weights.end());
  for (double& share : shares) share /= sum;
  return shares;
}

// ---------------------------------------------------------------------------------------------

namespace detail {

inline double pairwise_sum(std::span<const double> values) noexcept {
  constexpr std::size_t lanes = 8;
  constexpr std::size_t most_at_once = 128;
  const std::size_t n = values.size();
  if (n < lanes) {
    double sum = -0.0;  // so that a sum of negative zeros is one
    for (const double value : values) sum += value;
    return sum;
  }
  if (n > most_at_once) {
    const std::size_t half = n / 2 - n / 2 % lanes;
    return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
  }
  double r[lanes];
  for (std::size_t i = 0; i < lanes; ++i) r[i] = values[i];
  std::size_t i = lanes;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) r[j] += values[i + j];
  }
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; ++i) sum += values[i];
  return sum;
}

}  // namespace detail

inline double numpy_sum(std::span<const double> values) noexcept {
  return 0.0 + detail::pairwise_sum(values);
}

}  // namespace millrace::dataset
