// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/numpy_random.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::dataset {

namespace detail {

/// The smallest 2^b - 1 that is at least `max`.
constexpr std::uint64_t interval_mask(std::uint64_t max) noexcept {
  return max == 0 ? 0 : ~std::uint64_t{0} >> std::countl_zero(max);
}

}  // namespace detail

MILLRACE_INLINE std::uint64_t numpy_random::interval(std::uint64_t max) noexcept {
  const std::uint64_t mask = detail::interval_mask(max);
  if (max == 0) return 0;
  std::uint64_t drawn = 0;
  if (max <= 0xFFFFFFFFU) {
    do drawn = twister_() & mask;
    while (drawn > max);
  } else {
    do drawn = twister_.next64() & mask;
    while (drawn > max);
  }
  return drawn;
}

MILLRACE_INLINE double numpy_random::uniform() noexcept {
  const std::uint32_t high = twister_() >> 5;
  const std::uint32_t low = twister_() >> 6;
  return (high * 0x1p26 + low) * 0x1p-53;
}

// numpy's inversion method for any number of trials, with one trial. Each step is rounded as there.
MILLRACE_INLINE bool numpy_random::binomial(double p) noexcept {
  const bool inverted = !(p <= 0.5);
  const double rare = inverted ? 1 - p : p;
  const double none = std::exp(std::log(1 - rare));  // the probability of no success
  const double one = rare * none / (1 - rare);
  for (;;) {
    const double drawn = uniform();
    if (!(drawn > none)) return inverted;
    if (!(drawn - none > one)) return !inverted;
  }
}

MILLRACE_INLINE void numpy_random::intervals(std::uint32_t last,
                                             std::span<std::uint32_t> out) noexcept {
  assert(out.size() <= last);
  while (!out.empty()) {
    const auto mask = static_cast<std::uint32_t>(detail::interval_mask(last));
    // Bounds above half of `mask` use `mask`. Smaller bounds use the next smaller mask.
    const std::size_t n = std::min<std::size_t>(out.size(), last - (mask >> 1));
    intervals_of_one_mask(last, mask, out.first(n));
    out = out.subspan(n);
    last -= static_cast<std::uint32_t>(n);
  }
}

MILLRACE_INLINE void numpy_random::intervals_of_one_mask(std::uint32_t last, std::uint32_t mask,
                                                         std::span<std::uint32_t> out) noexcept {
  constexpr std::uint32_t group = 16;
  std::size_t count = 0;
  while (count < out.size()) {
    const std::span<const std::uint32_t> draws = twister_.ready();
    std::size_t used = 0;
    while (out.size() - count >= group && draws.size() - used >= group) {
      const std::uint32_t* const drawn = draws.data() + used;
      // Each accepted draw lowers the bound by one. Within a group of draws, every draw up to
      // `lowest` is accepted and every draw above `bound` is rejected, whatever was accepted
      // before. The order matters only for draws between `lowest` and `bound`, which are rare.
      const auto bound = static_cast<std::uint32_t>(last - count);
      const std::uint32_t lowest = bound - (group - 1);
      std::uint32_t between = 0;
      for (std::size_t i = 0; i < group; ++i) {
        between |= static_cast<std::uint32_t>((drawn[i] & mask) - lowest - 1 < group - 1);
      }
      std::uint32_t* const to = out.data() + count;
      std::size_t taken = 0;
      if (between == 0) {
        for (std::size_t i = 0; i < group; ++i) {
          to[taken] = drawn[i] & mask;
          taken += static_cast<std::size_t>(to[taken] <= lowest);
        }
      } else {
        for (std::size_t i = 0; i < group; ++i) {
          to[taken] = drawn[i] & mask;
          taken += static_cast<std::size_t>(to[taken] <= bound - taken);
        }
      }
      count += taken;
      used += group;
    }
    // Less than a whole group of draws is left, or less than a whole group of numbers is missing.
    for (std::size_t i = 0; i < group && used < draws.size() && count < out.size(); ++i) {
      const std::uint32_t drawn = draws[used++] & mask;
      out[count] = drawn;
      count += static_cast<std::size_t>(drawn <= last - count);
    }
    twister_.take(used);
  }
}

}  // namespace millrace::dataset
