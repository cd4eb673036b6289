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
  explicit mersenne_twister(std::span<const std::uint32_t> key) noexcept { seed<1>({this}, {key}); }
  /// Makes each of `all` what its key would make of a new one. Each step of seeding waits for the
  /// step before, so seeding four together takes about as long as seeding one.
  ///
  /// @pre all keys have the same size, from 1 to 624
  template <std::size_t N>
  static void seed(const std::array<mersenne_twister*, N>& all,
                   const std::array<std::span<const std::uint32_t>, N>& keys) noexcept;

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

template <std::size_t N>
void mersenne_twister::seed(const std::array<mersenne_twister*, N>& all,
                            const std::array<std::span<const std::uint32_t>, N>& keys) noexcept {
  static constexpr std::array<std::uint32_t, size> start = state_of(19650218);
  const std::size_t key_size = keys[0].size();
  assert(key_size != 0 && key_size <= size);
  std::array<std::uint32_t, N> last{};
  for (std::size_t n = 0; n < N; ++n) {
    assert(keys[n].size() == key_size);
    all[n]->state_ = start;
    all[n]->used_ = size;
    last[n] = start[0];
  }
  std::uint32_t i = 1;
  const auto next = [&] {
    if (++i < size) return;
    for (std::size_t n = 0; n < N; ++n) all[n]->state_[0] = last[n];
    i = 1;
  };
  for (std::uint32_t count = 0, j = 0; count < size; ++count) {
    for (std::size_t n = 0; n < N; ++n) {
      std::uint32_t& word = all[n]->state_[i];
      word = last[n] = (word ^ (last[n] ^ last[n] >> 30) * 1664525U) + (keys[n][j] + j);
    }
    next();
    if (++j == key_size) j = 0;
  }
  for (std::uint32_t count = 1; count < size; ++count) {
    for (std::size_t n = 0; n < N; ++n) {
      std::uint32_t& word = all[n]->state_[i];
      word = last[n] = (word ^ (last[n] ^ last[n] >> 30) * 1566083941U) - i;
    }
    next();
  }
  for (std::size_t n = 0; n < N; ++n) all[n]->state_[0] = 0x80000000U;
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
