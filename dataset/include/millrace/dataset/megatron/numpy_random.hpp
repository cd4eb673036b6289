// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <millrace/dataset/megatron/mersenne_twister.hpp>

namespace millrace::dataset {

/// numpy.random.RandomState(seed), as far as Megatron's indices need it: bounded integers and
/// shuffles, equal to numpy's draw by draw (numpy promises never to change them: NEP 19).
///
/// Which draws a bounded integer takes depends on those before it, so a shuffle is sequential;
/// but the draws come in bulk, and the memory that the swaps touch is fetched ahead of them.
/// Use from one thread.
class numpy_random {
 public:
  explicit numpy_random(std::uint32_t seed) noexcept : twister_(seed) {}

  /// A number from 0 to `max`, both included: of as many low bits of a draw as `max` has, drawn
  /// again while it is larger. Draws nothing for 0, and pairs of draws above 2^32 - 1.
  std::uint64_t interval(std::uint64_t max) noexcept;

  /// `interval(last)`, `interval(last - 1)`, ... into all of `out`: where a shuffle swaps to.
  ///
  /// @pre out.size() <= last
  void intervals(std::uint32_t last, std::span<std::uint32_t> out) noexcept;

  /// RandomState.shuffle of a one-dimensional array, of any size and element type.
  template <class T>
  void shuffle(std::span<T> values) {
    shuffle(values, [](std::size_t) {});
  }

  /// The same; `settled(i)` is called now and then, with i that fall to 0: what stands at i and
  /// behind it stays there.
  template <class T, class Settled>
  void shuffle(std::span<T> values, Settled&& settled);

 private:
  void intervals_of_one_mask(std::uint32_t last, std::uint32_t mask,
                             std::span<std::uint32_t> out) noexcept;

  mersenne_twister twister_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The smallest 2^b - 1 that is at least `max`.
constexpr std::uint64_t interval_mask(std::uint64_t max) noexcept {
  return max == 0 ? 0 : ~std::uint64_t{0} >> std::countl_zero(max);
}

}  // namespace detail

inline std::uint64_t numpy_random::interval(std::uint64_t max) noexcept {
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

inline void numpy_random::intervals(std::uint32_t last, std::span<std::uint32_t> out) noexcept {
  assert(out.size() <= last);
  while (!out.empty()) {
    const auto mask = static_cast<std::uint32_t>(detail::interval_mask(last));
    // Down to half of the mask, where the next smaller one begins.
    const std::size_t n = std::min<std::size_t>(out.size(), last - (mask >> 1));
    intervals_of_one_mask(last, mask, out.first(n));
    out = out.subspan(n);
    last -= static_cast<std::uint32_t>(n);
  }
}

inline void numpy_random::intervals_of_one_mask(std::uint32_t last, std::uint32_t mask,
                                                std::span<std::uint32_t> out) noexcept {
  constexpr std::uint32_t group = 16;
  std::size_t count = 0;
  while (count < out.size()) {
    const std::span<const std::uint32_t> draws = twister_.ready();
    std::size_t used = 0;
    while (out.size() - count >= group && draws.size() - used >= group) {
      const std::uint32_t* const drawn = draws.data() + used;
      // The bound sinks by one with each draw that is taken. Of a group, all at most `lowest` are
      // taken and all above `bound` are not, however many were before; only one in between makes
      // it matter which, and it is rare.
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
    // What is left is less than a group, of draws or of numbers wanted.
    for (std::size_t i = 0; i < group && used < draws.size() && count < out.size(); ++i) {
      const std::uint32_t drawn = draws[used++] & mask;
      out[count] = drawn;
      count += static_cast<std::size_t>(drawn <= last - count);
    }
    twister_.take(used);
  }
}

template <class T, class Settled>
void numpy_random::shuffle(std::span<T> values, Settled&& settled) {
  // From the last element down to the second, each changes places with one at or before it.
  std::size_t left = values.empty() ? 0 : values.size() - 1;  // still to be moved, with the first
  for (; left > 0xFFFFFFFFU; --left) std::swap(values[left], values[interval(left)]);

  // Two blocks of targets: while one is swapped, the memory of the next is on its way.
  constexpr std::size_t block = 256;
  std::array<std::array<std::uint32_t, block>, 2> targets;
  std::size_t next_last = left;
  const auto draw_next = [&](std::size_t which) {
    const std::size_t size = std::min(block, next_last);
    intervals(static_cast<std::uint32_t>(next_last), std::span(targets[which]).first(size));
    next_last -= size;
    return size;
  };
  std::size_t size = draw_next(0);
  for (std::size_t which = 0; size != 0; which ^= 1) {
    const std::size_t next_size = draw_next(which ^ 1);
    const auto& now = targets[which];
    const auto& ahead = targets[which ^ 1];
    T* const data = values.data();
    for (std::size_t i = 0; i < size; ++i) {
      if (i < next_size) __builtin_prefetch(data + ahead[i], 1);
      std::swap(data[left], data[now[i]]);
      --left;
    }
    settled(left + 1);
    size = next_size;
  }
  settled(0);
}

}  // namespace millrace::dataset
