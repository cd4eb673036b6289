// SPDX-License-Identifier: Apache-2.0
#include "greedy_groups.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE greedy_groups::greedy_groups(std::span<const double> weights,
                                             std::span<const std::int64_t> limits)
    : members_(weights.size()) {
  assert(limits.empty() || limits.size() == weights.size());
  const auto limit_of = [&](std::int16_t dataset) {
    return limits.empty() ? std::numeric_limits<std::int64_t>::max()
                          : limits[static_cast<std::size_t>(dataset)];
  };
  const auto weight_of = [&](std::int16_t dataset) {
    return weights[static_cast<std::size_t>(dataset)];
  };
  std::iota(members_.begin(), members_.end(), std::int16_t{0});
  std::stable_sort(members_.begin(), members_.end(), [&](std::int16_t a, std::int16_t b) {
    if (weight_of(a) != weight_of(b)) return weight_of(a) > weight_of(b);
    return limit_of(a) < limit_of(b);
  });
  for (std::uint32_t i = 0; i < members_.size();) {
    const std::int16_t first = members_[i];
    std::uint32_t end = i + 1;
    while (end < members_.size() && weight_of(members_[end]) == weight_of(first) &&
           limit_of(members_[end]) == limit_of(first)) {
      ++end;
    }
    weights_.push_back(weight_of(first));
    counts_.push_back(0.0);
    turns_.push_back({i, end, i, 0, limit_of(first)});
    i = end;
  }
}

}  // namespace detail

}  // namespace millrace::dataset
