// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "bpe/pair_table.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// Symbols of a word for merge_short: in place, with room for whole vectors.
struct short_symbols {
  static constexpr std::size_t capacity = 32;
  alignas(64) std::uint32_t ids[capacity];
  std::size_t count = 0;
};

/// Merges the symbols as far as they go: of all neighbours with a merge the lowest first, the
/// leftmost on ties. The same as bpe_merger, for short words.
void merge_short(const pair_table& pairs, short_symbols& symbols, instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
