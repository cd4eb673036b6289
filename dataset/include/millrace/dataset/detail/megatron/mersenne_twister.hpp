// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::dataset {

/// MT19937 (Matsumoto and Nishimura, 1998), seeded like `init_genrand`. Produces the same draws as
/// numpy.random.RandomState(seed), torch.Generator().manual_seed(seed) and std::mt19937(seed).
///
/// A key of several numbers seeds it like `init_by_array`, as numpy.random.RandomState([a, b])
/// does.
///
/// Makes 624 draws at a time, in loops that compilers vectorize, and buffers them for `ready()`. A
/// value type of 5 KB; use from one thread.
class mersenne_twister {
 public:
  using result_type = std::uint32_t;

  explicit mersenne_twister(std::uint32_t seed) noexcept : state_(state_of(seed)) {}
  /// @pre key has 1 to 624 numbers
  explicit mersenne_twister(std::span<const std::uint32_t> key) noexcept;

  static constexpr std::uint32_t min() noexcept { return 0; }
  static constexpr std::uint32_t max() noexcept { return 0xFFFFFFFF; }

  std::uint32_t operator()() noexcept {
    if (used_ == size) refill();
    return draws_[used_++];
  }

  /// Two draws as one number, the first in the upper half.
  std::uint64_t next64() noexcept {
    const std::uint64_t high = (*this)();
    return high << 32 | (*this)();
  }

  /// Returns the next draws, at least one, without consuming them; `take(n)` consumes them. The
  /// span is valid until the next draw or `take`.
  std::span<const std::uint32_t> ready() noexcept {
    if (used_ == size) refill();
    return std::span(draws_).subspan(used_);
  }

  /// @pre n <= ready().size()
  void take(std::size_t n) noexcept {
    assert(n <= size - used_);
    used_ += n;
  }

 private:
  static constexpr std::size_t size = 624;
  static constexpr std::size_t middle = 397;

  static constexpr std::array<std::uint32_t, size> state_of(std::uint32_t seed) noexcept;
  void refill() noexcept;

  std::array<std::uint32_t, size> state_;
  std::array<std::uint32_t, size> draws_;  // draws_[used_] and later draws are not yet taken
  std::size_t used_ = size;
};

// ---------------------------------------------------------------------------------------------

constexpr std::array<std::uint32_t, mersenne_twister::size> mersenne_twister::state_of(
    std::uint32_t seed) noexcept {
  std::array<std::uint32_t, size> state{};
  state[0] = seed;
  for (std::uint32_t i = 1; i < size; ++i) {
    state[i] = 1812433253U * (state[i - 1] ^ state[i - 1] >> 30) + i;
  }
  return state;
}

inline mersenne_twister::mersenne_twister(std::span<const std::uint32_t> key) noexcept {
  assert(!key.empty() && key.size() <= size);
  static constexpr std::array<std::uint32_t, size> start = state_of(19650218);
  state_ = start;
  std::uint32_t last = state_[0];
  std::uint32_t i = 1;
  const auto next = [&] {
    if (++i < size) return;
    state_[0] = last;
    i = 1;
  };
  for (std::uint32_t count = 0, j = 0; count < size; ++count) {
    last = (state_[i] ^ (last ^ last >> 30) * 1664525U) + key[j] + j;
    state_[i] = last;
    next();
    if (++j == key.size()) j = 0;
  }
  for (std::uint32_t count = 1; count < size; ++count) {
    last = (state_[i] ^ (last ^ last >> 30) * 1566083941U) - i;
    state_[i] = last;
    next();
  }
  state_[0] = 0x80000000U;
}

inline void mersenne_twister::refill() noexcept {
  const auto twist = [](std::uint32_t upper, std::uint32_t lower) {
    const std::uint32_t joined = (upper & 0x80000000U) | (lower & 0x7FFFFFFFU);
    return joined >> 1 ^ (0x9908B0DFU & (0U - (lower & 1U)));
  };
  // Update the state in place. No loop reads an entry shortly after writing it, so compilers can
  // vectorize the loops.
  std::uint32_t* const state = state_.data();
  std::size_t i = 0;
  for (; i < size - middle; ++i) state[i] = state[i + middle] ^ twist(state[i], state[i + 1]);
  for (; i < size - 1; ++i) state[i] = state[i + middle - size] ^ twist(state[i], state[i + 1]);
  state[i] = state[i + middle - size] ^ twist(state[i], state[0]);

  for (i = 0; i < size; ++i) {
    std::uint32_t draw = state[i];
    draw ^= draw >> 11;
    draw ^= draw << 7 & 0x9D2C5680U;
    draw ^= draw << 15 & 0xEFC60000U;
    draws_[i] = draw ^ draw >> 18;
  }
  used_ = 0;
}

}  // namespace millrace::dataset
