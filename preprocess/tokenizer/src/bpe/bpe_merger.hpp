// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Byte-pair encoding of one pretoken at a time. (A pretoken is a word that is merged separately.)
/// Repeatedly merges the adjacent pair of lowest rank, the leftmost such pair on ties, until no
/// pair can merge.
///
/// Owns its scratch memory; for one thread.
class bpe_merger {
 public:
  /// Maximum size of a pretoken, in symbols. Offsets into a pretoken are 32-bit numbers.
  static constexpr std::size_t max_symbols = 0x7FFFFFFF;

  /// @param merges  must outlive this object
  explicit bpe_merger(const merge_table& merges) : merges_(&merges) {}

  /// Merges `symbols`, the ids of single bytes, until no merge applies.
  ///
  /// Takes O(n log n) time in the worst case.
  /// @pre symbols.size() <= max_symbols
  /// @return the number of resulting ids, which are at the front of `symbols`.
  std::size_t merge(std::span<std::int32_t> symbols);

 private:
  std::size_t merge_short(std::span<std::int32_t> symbols) const noexcept;
  std::size_t merge_long(std::span<std::int32_t> symbols);
  void push(std::uint32_t left, std::uint32_t right, std::span<const std::int32_t> symbols);

  const merge_table* merges_;

  // Data of merge_long: the neighbors of each remaining symbol, and a min-heap of the pending
  // merges. A heap entry is `rank << 32 | index of the left symbol`.
  struct links {
    std::uint32_t before;
    std::uint32_t after;
  };
  std::vector<links> links_;
  std::vector<std::uint64_t> open_;
};

}  // namespace millrace::tokenizer::detail
