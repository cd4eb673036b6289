// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/normalize.hpp>

#include <cstddef>
#include <span>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE double pairwise_sum(std::span<const double> values) noexcept {
  constexpr std::size_t lanes = 8;
  constexpr std::size_t most_at_once = 128;
  const std::size_t n = values.size();
  if (n < lanes) {
    double sum = -0.0;  // so that a sum of negative zeros is -0.0
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

MILLRACE_INLINE double numpy_sum(std::span<const double> values) noexcept {
  return 0.0 + detail::pairwise_sum(values);
}

}  // namespace millrace::dataset
