// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace millrace::tokenizer::detail {

/// Up to 6 ids below 2^20 in 16 bytes, so that an entry of the short cache is half a cache line.
class packed_ids {
 public:
  static constexpr std::size_t max_ids = 6;

  /// @param at  gives the id at a place
  /// @return whether they fit
  template <class At>
  bool pack(std::size_t count, At at, std::size_t limit = max_ids) noexcept {
    if (count > limit) return false;
    low_ = std::uint64_t{count} << count_shift;
    high_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<std::uint64_t>(at(i));
      if (id > mask) return false;
      (i < 3 ? low_ : high_) |= id << bits * (i % 3);
    }
    return true;
  }

  std::size_t count() const noexcept { return low_ >> count_shift; }

  /// Writes all of them, and whatever up to `max_ids`.
  void unpack(std::int32_t* out) const noexcept {
    out[0] = id(low_, 0);
    out[1] = id(low_, 1);
    out[2] = id(low_, 2);
    if (count() <= 3) return;
    out[3] = id(high_, 0);
    out[4] = id(high_, 1);
    out[5] = id(high_, 2);
  }

 protected:
  static constexpr unsigned bits = 20;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  static constexpr unsigned count_shift = 60;

  static std::int32_t id(std::uint64_t word, unsigned place) noexcept {
    return static_cast<std::int32_t>(word >> bits * place & mask);
  }

  std::uint64_t low_ = 0;
  std::uint64_t high_ = 0;
};

/// Up to 5 ids, and a float that is not negative, kept to 16 bits of its fraction: rounded down.
class packed_path : public packed_ids {
 public:
  static constexpr std::size_t max_ids = 5;

  template <class At>
  bool pack(std::size_t count, At at, float limit) noexcept {
    if (!packed_ids::pack(count, at, max_ids)) return false;
    std::uint32_t limit_bits = 0;
    std::memcpy(&limit_bits, &limit, sizeof limit_bits);
    high_ |= std::uint64_t{limit_bits >> 8} << limit_shift;
    return true;
  }

  float limit() const noexcept {
    const auto limit_bits = static_cast<std::uint32_t>(high_ >> limit_shift) << 8;
    float limit = 0;
    std::memcpy(&limit, &limit_bits, sizeof limit);
    return limit;
  }

 private:
  static constexpr unsigned limit_shift = 40;
};

}  // namespace millrace::tokenizer::detail
