// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "bpe/huge_array.hpp"
#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Which pairs merge, for vocabularies whose ids rise with rank: the merged id is its own rank, and
/// an entry is one 64-bit word. Half the memory of merge_table, and so half the cache misses.
/// Read-only once built.
class pair_table {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr std::int32_t max_id = (1 << 20) - 2;

  /// For up to so many rules, all with ids up to max_id.
  explicit pair_table(std::size_t rules) : pair_table(std::bit_ceil(rules * 5 / 3 + 2), 0) {}

  /// @pre fewer rules than it was made for, and none for this pair, are there
  void add(const merge_rule& rule) noexcept {
    const std::uint64_t pair =
        key(static_cast<std::uint32_t>(rule.left), static_cast<std::uint32_t>(rule.right));
    std::size_t at = home(pair);
    while (slots_[at] != 0) at = (at + 1) & mask_;
    slots_[at] = pair << 24 | static_cast<std::uint32_t>(rule.result);
  }

  /// What the pair merges to, which is also its rank: the lower, the earlier.
  std::uint32_t find(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t pair = key(left, right);
    for (std::size_t at = home(pair);; at = (at + 1) & mask_) {
      const std::uint64_t slot = slots_[at];
      if (slot >> 24 == pair) return static_cast<std::uint32_t>(slot) & 0xFFFFFF;
      if (slot == 0) return none;  // met: at most 3 of 5 slots are taken
    }
  }

 private:
  pair_table(std::size_t slots, int)
      : slots_(slots), mask_(slots - 1), shift_(64 - std::countr_zero(slots)) {}

  // One more than the ids, so that no pair is all zero.
  static std::uint64_t key(std::uint32_t left, std::uint32_t right) noexcept {
    return std::uint64_t{left + 1} << 20 | right;
  }
  std::size_t home(std::uint64_t pair) const noexcept {
    return (pair ^ pair >> 20) * 0x9E3779B97F4A7C15U >> shift_;
  }

  huge_array<std::uint64_t> slots_;  // left + 1, right: 20 bits each; result: 24 bits
  std::size_t mask_;
  int shift_;
};

}  // namespace millrace::tokenizer::detail
