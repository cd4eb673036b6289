// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Byte-pair encoding of one pretoken at a time: of all neighbours that have a merge, the one of
/// lowest rank merges, the leftmost on ties, until there is none.
///
/// Owns the scratch memory of that, for one thread.
class bpe_merger {
 public:
  /// Longest pretoken: places in it are 32-bit.
  static constexpr std::size_t max_symbols = 0x7FFFFFFF;

  /// @param merges  outlives this
  explicit bpe_merger(const merge_table& merges) : merges_(&merges) {}

  /// Merges `symbols`, the ids of single bytes, as far as they go.
  ///
  /// Time grows as n log n with their number whatever they are.
  /// @pre symbols.size() <= max_symbols
  /// @return the ids, at the front of `symbols`; their number.
  std::size_t merge(std::span<std::int32_t> symbols);

 private:
  std::size_t merge_short(std::span<std::int32_t> symbols) const noexcept;
  std::size_t merge_long(std::span<std::int32_t> symbols);
  void push(std::uint32_t left, std::uint32_t right, std::span<const std::int32_t> symbols);

  const merge_table* merges_;

  // Of merge_long: neighbours of each symbol that is left, and the merges still open as
  // rank << 32 | place, a heap with the lowest on top.
  struct links {
    std::uint32_t before;
    std::uint32_t after;
  };
  std::vector<links> links_;
  std::vector<std::uint64_t> open_;
};

}  // namespace millrace::tokenizer::detail
