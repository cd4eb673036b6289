// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/word_table.hpp"

namespace millrace::tokenizer::detail {

/// Line bits of a word_table that takes about so many bytes, 128 at least.
inline unsigned table_line_bits(std::size_t bytes) noexcept {
  return std::clamp(static_cast<unsigned>(std::bit_width(bytes / 64)), 2U, 31U) - 1;
}

/// The words of one size that an encoder remembers. Those that leave the front because others share
/// their line wait behind it, and come back when they are met again: to look there costs a tenth of
/// encoding them anew.
template <class Table>
struct remembered_words {
  /// 2^line_bits lines in front, and as many behind.
  explicit remembered_words(unsigned line_bits)
      : front(line_bits), behind(line_bits), used_((std::size_t{1} << line_bits) / 64 + 1) {}

  void put(const typename Table::key& word, const typename Table::ids& found) noexcept {
    const auto left = front.put(word, found);
    if (left.word == typename Table::key{}) return;
    behind.put(left.word, left.found);
    mark(left.word.hash());
  }

  /// Enters a token behind the front, if there is room and it is short enough: where words are that
  /// may come, out of the way of those that do.
  void begin_with(std::string_view word, std::int32_t id) noexcept {
    using key = typename Table::key;
    if (word.size() > key::max_bytes) return;
    typename Table::ids found;
    found.set({&id, 1});
    const key place = key::of(word.data(), word.size(), word.size());
    if (behind.put_if_free(place, found)) mark(place.hash());
  }

  /// The ids of a word, which is in front then, or null.
  const typename Table::ids* find(const typename Table::key& word, std::uint64_t hash) noexcept {
    if (const auto* found = Table::find(front.line_of(hash), word)) return found;
    if (!may_be_behind(hash)) return nullptr;
    const auto* found = Table::find(behind.line_of(hash), word);
    if (found == nullptr) return nullptr;
    put(word, typename Table::ids(*found));
    return Table::find(front.line_of(hash), word);
  }

  /// For words that will be asked for.
  void prefetch(std::uint64_t hash) const noexcept {
    if (may_be_behind(hash)) __builtin_prefetch(&behind.line_of(hash));
  }

  Table front;
  Table behind;

 private:
  void mark(std::uint64_t hash) noexcept {
    const std::uint64_t line = hash >> behind.shift();
    used_[line / 64] |= std::uint64_t{1} << line % 64;
  }
  bool may_be_behind(std::uint64_t hash) const noexcept {
    const std::uint64_t line = hash >> behind.shift();
    return (used_[line / 64] >> line % 64 & 1) != 0;
  }

  // A bit for each line behind that some word is in: to see that there is none costs no cache miss.
  std::vector<std::uint64_t> used_;
};

}  // namespace millrace::tokenizer::detail
