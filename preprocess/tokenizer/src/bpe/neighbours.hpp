// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpe/merge_table.hpp"
#include "bpe/pair_table.hpp"

namespace millrace::tokenizer::detail {

/// Tells whether two tokens may follow one another: whether the encoding of their bytes together is
/// just the two.
///
/// A sequence of tokens in which all neighbours may is the encoding of its bytes (rust-gems, "bpe",
/// describes the property). So a long word may be encoded in parts, if the seams are checked.
class neighbour_rules {
 public:
  /// @param rules  one for each token that merging reaches, results rising: those of a pair_table
  explicit neighbour_rules(std::span<const merge_rule> rules) {
    for (const merge_rule& rule : rules) {
      const auto result = static_cast<std::size_t>(rule.result);
      if (result >= halves_.size()) halves_.resize(result + 1);
      halves_[result] = {static_cast<std::uint32_t>(rule.left),
                         static_cast<std::uint32_t>(rule.right)};
    }
  }

  /// Whether merging reaches the token: its bytes, by themselves, merge to it. Not of bytes.
  bool has_rule(std::int64_t id) const noexcept {
    return id < static_cast<std::int64_t>(halves_.size()) &&
           !is_byte(static_cast<std::uint32_t>(id));
  }

  /// Undoes the merges on both sides of the seam, the last first: the two at the seam would have
  /// merged if their rank is below that of the merge just undone, on the right side also if it is
  /// the same one, as equal merges go from left to right.
  bool may_follow(const pair_table& pairs, std::uint32_t left, std::uint32_t right) const noexcept {
    std::uint32_t limit = pair_table::none;
    for (;;) {
      const std::uint32_t merged = pairs.find(left, right);
      if (merged != pair_table::none && merged < limit) return false;
      if (order(left) > order(right)) {
        limit = left;
        left = halves_[left].right;
      } else {
        if (is_byte(right)) return true;
        limit = right + 1;
        right = halves_[right].left;
      }
    }
  }

 private:
  static constexpr std::uint32_t no_half = 0xFFFFFFFF;
  struct halves {
    std::uint32_t left = no_half;
    std::uint32_t right = no_half;
  };

  bool is_byte(std::uint32_t id) const noexcept {
    return id >= halves_.size() || halves_[id].left == no_half;
  }
  std::int64_t order(std::uint32_t id) const noexcept {
    return is_byte(id) ? -1 : std::int64_t{id};
  }

  std::vector<halves> halves_;
};

}  // namespace millrace::tokenizer::detail
