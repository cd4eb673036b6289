// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/blend_slots.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Returns the sum of the weights, added in list order.
MILLRACE_INLINE double checked_sum(std::span<const double> weights) {
  if (weights.empty()) throw config_error("a blend has no sources, expected one or more");
  if (weights.size() > blend_slots::most_sources) {
    throw config_error("a blend has " + std::to_string(weights.size()) +
                       " sources, expected at most " + std::to_string(blend_slots::most_sources));
  }
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0) || !std::isfinite(weights[i])) {
      throw config_error("weight " + std::to_string(i) + " of a blend is " +
                         std::to_string(weights[i]) +
                         ", expected a number above 0; omit sources that are not wanted");
    }
    sum += weights[i];
  }
  if (!std::isfinite(sum)) {
    throw config_error(
        "the sum of the blend weights overflows a double; use ratios such as 0.7 and 0.3");
  }
  return sum;
}

/// Converts weights to integers that add up to 2^bits, by the largest-remainder method. Ties go to
/// the first source.
MILLRACE_INLINE std::vector<std::int64_t> apportion(std::span<const double> weights, double sum,
                                                    int bits) {
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::size_t>> remainders;
  std::int64_t rest = std::int64_t{1} << bits;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double quota = std::ldexp(weights[i] / sum, bits);  // exact except for the division
    const double whole = std::floor(quota);
    counts.push_back(static_cast<std::int64_t>(whole));
    remainders.emplace_back(whole - quota, i);
    rest -= counts.back();
  }
  assert(0 <= rest && rest <= static_cast<std::int64_t>(weights.size()));
  std::sort(remainders.begin(), remainders.end());
  for (std::size_t i = 0; i < static_cast<std::size_t>(rest); ++i) ++counts[remainders[i].second];
  return counts;
}

}  // namespace detail

MILLRACE_INLINE blend_slots::blend_slots(std::span<const double> weights) {
  const double sum = detail::checked_sum(weights);
  if (weights.size() == 1) {
    counts_ = {1};
    return;
  }
  period_bits_ = least_period_bits;
  counts_ = detail::apportion(weights, sum, period_bits_);
  const auto least = [&] { return *std::min_element(counts_.begin(), counts_.end()); };
  while (least() < wanted_slots && period_bits_ < most_period_bits) {
    counts_ = detail::apportion(weights, sum, ++period_bits_);
  }
  if (least() == 0) {
    const auto i =
        static_cast<std::size_t>(std::find(counts_.begin(), counts_.end(), 0) - counts_.begin());
    throw config_error("weight " + std::to_string(i) + " of a blend is " +
                       std::to_string(weights[i]) + ", less than 2^-22 of the sum " +
                       std::to_string(sum) + "; omit the source, or raise its weight");
  }
  lay();
}

/// Assigns slots by Tijdeman's rule for n sources. At time t, compare a source's share of the first
/// t slots with the number of slots that it has received. The source is eligible if it lags by at
/// least d = 1 / (2 (n - 1)) slots. The eligible source with the earliest deadline gets the slot.
///
/// In integers, with M = 2 (n - 1): let a source have c of the P slots of the period, and let x be
/// the number of slots that it has received. The source is eligible at any t with
/// M (c t - P x) >= P. It must get a slot before t reaches P (M (x + 1) - 1) / (M c). No product
/// exceeds 2^62.
MILLRACE_INLINE void blend_slots::lay() {
  const auto n = counts_.size();
  const std::int64_t size = period();
  const auto m = static_cast<std::int64_t>(2 * (n - 1));
  struct deadline {
    std::int64_t numerator;  // M (x + 1) - 1
    std::int64_t count;      // c
    std::size_t source;
    // A later deadline is "less", so the earliest deadline is at the top of the heap.
    bool operator<(const deadline& other) const noexcept {
      const std::int64_t left = numerator * other.count;
      const std::int64_t right = other.numerator * count;
      return left != right ? left > right : source > other.source;
    }
  };
  constexpr std::uint32_t none = ~std::uint32_t{0};
  // [time]: the sources that are eligible from that time on, as linked lists through `next`.
  std::vector<std::uint32_t> released(index(size) + 2, none);
  std::vector<std::uint32_t> next(n, none);
  std::vector<std::int64_t> had(n);
  const auto release = [&](std::size_t i, std::int64_t earliest) {
    const std::int64_t per = m * counts_[i];
    assert(per > 0);  // there are two sources or more, and each has a slot
    // ceil(P (1 + M x) / (M c)). The product P M x is at most 2^22 * 2^17 * 2^22.
    const std::int64_t time = std::max(earliest, (size * (1 + m * had[i]) + per - 1) / per);
    if (time > size) return;
    next[i] = released[index(time)];
    released[index(time)] = static_cast<std::uint32_t>(i);
  };
  firsts_.resize(n);
  std::exclusive_scan(counts_.begin(), counts_.end(), firsts_.begin(), std::int64_t{0});
  slots_.resize(index(size));
  positions_.resize(index(size));
  std::priority_queue<deadline> eligible;
  for (std::size_t i = 0; i < n; ++i) release(i, 1);
  for (std::int64_t t = 1; t <= size; ++t) {
    for (std::uint32_t i = released[index(t)]; i != none; i = next[i]) {
      eligible.push({m * (had[i] + 1) - 1, counts_[i], i});
    }
    assert(!eligible.empty());  // by Tijdeman's theorem
    const std::size_t i = eligible.top().source;
    eligible.pop();
    slots_[index(t - 1)] = {static_cast<std::uint16_t>(i), static_cast<std::uint32_t>(had[i])};
    positions_[index(firsts_[i] + had[i])] = static_cast<std::uint32_t>(t - 1);
    ++had[i];
    release(i, t + 1);
  }
}

MILLRACE_INLINE std::int64_t blend_slots::taken(std::int64_t source,
                                                std::int64_t positions) const noexcept {
  assert(0 <= source && source < source_count() && 0 <= positions);
  if (counts_.size() == 1) return positions;
  const auto first = positions_.begin() + firsts_[index(source)];
  const auto part = std::lower_bound(first, first + slots(source),
                                     static_cast<std::uint32_t>(positions & (period() - 1)));
  return (positions >> period_bits_) * slots(source) + (part - first);
}

}  // namespace millrace::dataset
