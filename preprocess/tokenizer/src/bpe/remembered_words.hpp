// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "bpe/word_table.hpp"

namespace millrace::tokenizer::detail {

/// Line bits of a word_table that takes about so many bytes, 128 at least.
inline unsigned table_line_bits(std::size_t bytes) noexcept {
  return std::clamp(static_cast<unsigned>(std::bit_width(bytes / 64)), 2U, 31U) - 1;
}

/// The words of one size that an encoder remembers. Those that leave the front because others share
/// their line wait behind it, and come back when they are met again: to look there costs a tenth of
/// merging them anew.
template <class Table>
struct remembered_words {
  explicit remembered_words(unsigned line_bits) : front(line_bits), behind(line_bits) {}

  void put(const typename Table::key& word, const typename Table::ids& found) noexcept {
    const auto left = front.put(word, found);
    if (left.word != typename Table::key{}) behind.put(left.word, left.found);
  }

  /// The ids of a word, which is in front then, or null.
  const typename Table::ids* find(const typename Table::key& word, std::uint64_t hash) noexcept {
    if (const auto* found = Table::find(front.line_of(hash), word)) return found;
    const auto* found = Table::find(behind.line_of(hash), word);
    if (found == nullptr) return nullptr;
    put(word, typename Table::ids(*found));
    return Table::find(front.line_of(hash), word);
  }

  Table front;
  Table behind;
};

}  // namespace millrace::tokenizer::detail
