// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include <millrace/export.hpp>

namespace millrace::dataset {

/// numpy.random.default_rng(seed), as far as Megatron's mock data needs it: bounded integers of 32
/// bits. PCG64 (O'Neill, 2014: XSL-RR 128/64), seeded through numpy's SeedSequence, and bounded by
/// Lemire's multiplication (2019); equal to numpy's draw by draw. Use from one thread.
class MILLRACE_EXPORT numpy_generator {
 public:
  explicit numpy_generator(std::uint32_t seed) noexcept;

  std::uint64_t next64() noexcept {
    state_ = state_ * multiplier + increment_;
    const auto high = static_cast<std::uint64_t>(state_ >> 64);
    const auto low = static_cast<std::uint64_t>(state_);
    return std::rotr(high ^ low, static_cast<int>(state_ >> 122));
  }

  /// Half of a draw: its lower bits, and then the upper ones.
  std::uint32_t next32() noexcept {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    const std::uint64_t drawn = next64();
    has_half_ = true;
    half_ = static_cast<std::uint32_t>(drawn >> 32);
    return static_cast<std::uint32_t>(drawn);
  }

  /// As Generator.integers(low, high, dtype=int32) draws each of its numbers: `high` is not one.
  ///
  /// @pre low < high
  std::int32_t integer(std::int32_t low, std::int32_t high) noexcept;

 private:
  __extension__ using uint128 = unsigned __int128;
  static constexpr uint128 multiplier =
      uint128{2549297995355413924U} << 64 | uint128{4865540595714422341U};

  uint128 state_ = 0;
  uint128 increment_ = 0;
  std::uint32_t half_ = 0;
  bool has_half_ = false;
};

}  // namespace millrace::dataset
