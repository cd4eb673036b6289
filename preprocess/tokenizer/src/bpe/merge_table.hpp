// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bpe/huge_array.hpp"
#include "core/table_io.hpp"

namespace millrace::tokenizer::detail {

/// One rule of a merge list: `result` can replace the adjacent tokens `left` and `right`.
struct merge_rule {
  std::int32_t left;
  std::int32_t right;
  std::int32_t result;
};

/// Maps pairs of adjacent tokens to their rank and merge result. Read-only once built.
class merge_table {
 public:
  static constexpr std::uint32_t no_rank = 0xFFFFFFFF;

  struct merge {
    std::uint32_t rank = no_rank;  ///< lower ranks merge first
    std::int32_t result = -1;
  };

  /// @param rules  in order of rank; ids are not negative; if two rules have the same pair, the
  ///               later one wins
  /// @pre rules.size() < no_rank
  explicit merge_table(std::span<const merge_rule> rules)
      : slots_(std::bit_ceil(2 * rules.size() + 2)), shift_(64 - std::countr_zero(slots_.size())) {
    std::fill_n(slots_.data(), slots_.size(), slot());
    for (std::uint32_t rank = 0; rank < rules.size(); ++rank) {
      const merge_rule& rule = rules[rank];
      const std::uint64_t pair = key(rule.left, rule.right);
      std::size_t at = home(pair);
      while (slots_[at].pair != no_pair && slots_[at].pair != pair) at = next(at);
      slots_[at] = {pair, {rank, rule.result}};
    }
  }

  explicit merge_table(table_reader& in) { fields(in, *this); }
  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.slots_);
    io(self.shift_);
  }

  /// The merge of the pair. If the pair does not merge, the rank is `no_rank`.
  merge find(std::int32_t left, std::int32_t right) const noexcept {
    const std::uint64_t pair = key(left, right);
    for (std::size_t at = home(pair);; at = next(at)) {
      const slot& s = slots_[at];
      if (s.pair == pair) return s.value;
      if (s.pair == no_pair) return {};  // a free slot always exists: at most half are used
    }
  }

 private:
  static constexpr std::uint64_t no_pair = ~std::uint64_t{0};  // invalid: ids are not negative

  struct slot {
    std::uint64_t pair = no_pair;
    merge value;
  };

  static std::uint64_t key(std::int32_t left, std::int32_t right) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t home(std::uint64_t pair) const noexcept {
    return (pair ^ pair >> 32) * 0x9E3779B97F4A7C15U >> shift_;
  }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }

  huge_array<slot> slots_;  // size is a power of two, at least 2
  int shift_ = 0;
};

}  // namespace millrace::tokenizer::detail
