// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::dataset {

/// A set of numbers from 0 to `most`, with fast searches for the next member up or down.
///
/// A hierarchical bitmap. The lowest level has one bit per number; the bit is set if the number is
/// a member. Each higher level has one bit per 64 bits of the level below; the bit is set if any of
/// those 64 bits is set. The top level is a single word. A search takes a few steps up and down.
/// Not thread-safe.
class level_bitmap {
 public:
  static constexpr std::size_t none = ~std::size_t{0};

  explicit level_bitmap(std::size_t most) {
    std::size_t bits = most + 1;
    do {
      bits = (bits + 63) / 64;
      levels_.emplace_back(bits);
    } while (bits > 1);
  }

  bool has(std::size_t number) const noexcept {
    return (levels_[0][number >> 6] >> (number & 63) & 1) != 0;
  }

  void insert(std::size_t number) noexcept {
    for (auto& level : levels_) {
      level[number >> 6] |= std::uint64_t{1} << (number & 63);
      number >>= 6;
    }
  }

  void erase(std::size_t number) noexcept {
    for (auto& level : levels_) {
      std::uint64_t& word = level[number >> 6];
      word &= ~(std::uint64_t{1} << (number & 63));
      if (word != 0) return;
      number >>= 6;
    }
  }

  /// Returns the smallest member that is at least `number`, or `none`. `number` may be most + 1.
  std::size_t at_least(std::size_t number) const noexcept {
    std::size_t level = 0;
    for (;; ++level, number = (number >> 6) + 1) {
      if (level == levels_.size() || number >> 6 >= levels_[level].size()) return none;
      const std::uint64_t word = levels_[level][number >> 6] >> (number & 63);
      if (word == 0) continue;
      number += static_cast<std::size_t>(std::countr_zero(word));
      break;
    }
    while (level-- > 0) {
      number = number << 6 | static_cast<std::size_t>(std::countr_zero(levels_[level][number]));
    }
    return number;
  }

  /// Returns the largest member that is at most `number`, or `none`.
  /// @pre number <= most
  std::size_t at_most(std::size_t number) const noexcept {
    std::size_t level = 0;
    for (;; ++level, number = (number >> 6) - 1) {
      if (level == levels_.size()) return none;
      const std::uint64_t word = levels_[level][number >> 6] << (63 - (number & 63));
      if (word != 0) {
        number -= static_cast<std::size_t>(std::countl_zero(word));
        break;
      }
      if (number >> 6 == 0) return none;
    }
    while (level-- > 0) {
      const auto top = 63 - static_cast<std::size_t>(std::countl_zero(levels_[level][number]));
      number = number << 6 | top;
    }
    return number;
  }

 private:
  std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace millrace::dataset
