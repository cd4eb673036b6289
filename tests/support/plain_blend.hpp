// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <millrace/dataset/detail/megatron/greedy_blend.hpp>

/// Computes the greedy blend directly from its definition: for each sample, it examines every
/// dataset. Tests and benchmarks compare the optimized versions with this one.
namespace millrace::test {

/// The two columns of a blend.
struct blend_columns {
  std::vector<std::int16_t> dataset_index;
  std::vector<std::int64_t> dataset_sample_index;

  explicit blend_columns(std::int64_t size)
      : dataset_index(static_cast<std::size_t>(size), -1),
        dataset_sample_index(static_cast<std::size_t>(size), -1) {}
  dataset::blend_index_span span() { return {dataset_index, dataset_sample_index}; }
  bool operator==(const blend_columns&) const = default;
};

/// Returns `weight * position - count`. Rounds the product, then the difference. `volatile`
/// prevents the compiler from fusing the two operations.
inline double error_rounded_twice(double weight, double position, double count) {
  volatile double product = weight * position;
  return product - count;
}

inline double error_rounded_once(double weight, double position, double count) {
  return std::fma(weight, position, -count);
}

/// @param limits  maximum number of samples of each dataset; empty: no limits
template <class Error>
void fill_plain_blend(std::span<const double> weights, std::span<const std::int64_t> limits,
                      dataset::blend_index_span out, Error error) {
  std::vector<std::int64_t> counts(weights.size());
  for (std::size_t i = 0; i < out.dataset_index.size(); ++i) {
    const double position = std::max(static_cast<double>(i), 1.0);
    double best = std::numeric_limits<double>::lowest();
    std::size_t winner = 0;
    for (std::size_t d = 0; d < weights.size(); ++d) {
      if (!limits.empty() && counts[d] == limits[d]) continue;
      const double e = error(weights[d], position, static_cast<double>(counts[d]));
      if (e > best) {
        best = e;
        winner = d;
      }
    }
    out.dataset_index[i] = static_cast<std::int16_t>(winner);
    out.dataset_sample_index[i] = counts[winner]++;
  }
}

}  // namespace millrace::test
