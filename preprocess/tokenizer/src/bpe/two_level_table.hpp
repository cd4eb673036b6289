// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "bpe/shared_pretoken_cache.hpp"

namespace millrace::tokenizer::detail {

/// A two-level cache for the words of one key size. Each encoder has its own front table, which
/// holds its most recent words. All encoders share one second-level table, which receives every new
/// word. So the shared table also has words that a front table has dropped, or that only other
/// encoders have encoded. A look-up in the shared table takes less time than encoding the word
/// again, if its line has been prefetched.
template <class Table>
class two_level_table {
 public:
  using key = typename Table::key;
  using ids = typename Table::ids;

  /// @param line_bits  the front table has 2^line_bits lines, as in pretoken_table
  /// @param behind     the shared table; must outlive this object
  two_level_table(unsigned line_bits, shared_pretoken_table<Table>& behind)
      : front_(line_bits), behind_(&behind) {}

  /// The front table, for loops that look up words themselves.
  const Table& front() const noexcept { return front_; }

  /// @param hash  here and below, the hash of `word`
  void put(const key& word, std::uint64_t hash, const ids& found) noexcept {
    front_.put(word, hash, found);
    behind_->add(word, hash, found);
  }

  /// Puts a word whose entry has changed into the front table only.
  void put_in_front(const key& word, std::uint64_t hash, const ids& found) noexcept {
    front_.put(word, hash, found);
  }

  bool has_in_front(const key& word) const noexcept {
    return Table::find(front_.line_of(word.hash()), word) != nullptr;
  }

  /// The ids of a word, or null. If only the shared table has the word, copies it to the front
  /// table.
  const ids* find(const key& word, std::uint64_t hash) noexcept {
    if (const auto* found = Table::find(front_.line_of(hash), word)) return found;
    const auto* found = behind_->find(word, hash);
    if (found == nullptr) return nullptr;
    front_.put(word, hash, *found);
    return Table::find(front_.line_of(hash), word);
  }

  /// Prefetches the part of the shared table that find() and put() access.
  void prefetch(std::uint64_t hash) const noexcept { behind_->prefetch(hash); }

 private:
  Table front_;
  shared_pretoken_table<Table>* behind_;
};

}  // namespace millrace::tokenizer::detail
