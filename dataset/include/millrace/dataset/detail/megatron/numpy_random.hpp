// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <millrace/dataset/detail/megatron/mersenne_twister.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The part of numpy.random.RandomState that Megatron's datasets need: bounded integers, shuffles
/// and single trials. Makes the same draws as numpy, which promises never to change them (NEP 19).
///
/// The number of draws for a bounded integer depends on the values drawn, so a shuffle is
/// sequential. For speed, draws are made in bulk, and the memory of the next swaps is prefetched.
/// Use from one thread.
class MILLRACE_EXPORT numpy_random {
 public:
  explicit numpy_random(std::uint32_t seed) noexcept : twister_(seed) {}
  /// RandomState of a list of 1 to 624 numbers.
  explicit numpy_random(std::span<const std::uint32_t> key) noexcept : twister_(key) {}
  /// Seeds several generators with lists, as mersenne_twister::seed().
  template <std::size_t N>
  static void seed(std::array<numpy_random, N>& all,
                   const std::array<std::span<const std::uint32_t>, N>& keys) noexcept {
    std::array<mersenne_twister*, N> twisters{};
    for (std::size_t n = 0; n < N; ++n) twisters[n] = &all[n].twister_;
    mersenne_twister::seed(twisters, keys);
  }

  /// Returns a number from 0 to `max`, inclusive. Takes the lowest b bits of a draw, where b is the
  /// bit width of `max`. While the result is larger than `max`, draws again. If `max` is 0, takes
  /// no draw. If `max` is above 2^32 - 1, takes two draws at a time.
  std::uint64_t interval(std::uint64_t max) noexcept;

  /// RandomState.random_sample(): a number from 0 up to, but not including, 1. Takes two draws.
  double uniform() noexcept;

  /// RandomState.binomial(1, p) == 1: true with the probability `p`. Takes two draws, also if `p`
  /// is 0 or 1; two more in the rare case (once in 2^50) that rounding errors make numpy try again.
  ///
  /// @pre 0 <= p <= 1
  bool binomial(double p) noexcept;

  /// Fills `out` with `interval(last)`, `interval(last - 1)`, ...: the swap targets of a shuffle.
  ///
  /// @pre out.size() <= last
  void intervals(std::uint32_t last, std::span<std::uint32_t> out) noexcept;

  /// RandomState.shuffle of a one-dimensional array, of any size and element type.
  template <class T>
  void shuffle(std::span<T> values) {
    shuffle(values, [](std::size_t) {});
  }

  /// As above, but also calls `settled(i)` from time to time, with i decreasing to 0. At each call,
  /// element i and all elements after it are final.
  template <class T, class Settled>
  void shuffle(std::span<T> values, Settled&& settled);

 private:
  void intervals_of_one_mask(std::uint32_t last, std::uint32_t mask,
                             std::span<std::uint32_t> out) noexcept;

  mersenne_twister twister_;
};

// ---------------------------------------------------------------------------------------------

template <class T, class Settled>
void numpy_random::shuffle(std::span<T> values, Settled&& settled) {
  // From the last element down to the second, swap each element with a random element at or before
  // it. `left` is the number of elements still to swap; it excludes the first element.
  std::size_t left = values.empty() ? 0 : values.size() - 1;
  for (; left > 0xFFFFFFFFU; --left) std::swap(values[left], values[interval(left)]);

  // Two blocks of targets: while one block is swapped, the memory of the next is prefetched.
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
