// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bpe/shared_pretoken_cache.hpp"

namespace millrace::tokenizer::detail {

/// The cached words of one size: in front the encoder's own table with the words that it met last,
/// behind it the table that all encoders share. A word that another word pushed out of the front,
/// or that another encoder met, is behind. A look-up there costs a tenth of encoding the word
/// again.
template <class Table>
class two_level_table {
 public:
  using key = typename Table::key;
  using ids = typename Table::ids;

  /// @param line_bits  of the front, as pretoken_table takes them
  /// @param behind     outlives this
  two_level_table(unsigned line_bits, shared_pretoken_table<Table>& behind)
      : front_(line_bits), behind_(&behind) {}

  /// What is in front, for loops that look words up themselves.
  const Table& front() const noexcept { return front_; }

  void put(const key& word, const ids& found) noexcept {
    front_.put(word, found);
    behind_->prefetch_to_add(word.hash());
    entry& oldest = to_add_[next_++ % to_add_.size()];
    if (oldest.word != key{}) behind_->add(oldest.word, oldest.found);
    oldest = {word, found};
  }

  bool has_in_front(const key& word) const noexcept {
    return Table::find(front_.line_of(word.hash()), word) != nullptr;
  }

  /// The ids of a word, which is in front then, or null.
  const ids* find(const key& word, std::uint64_t hash) noexcept {
    if (const auto* found = Table::find(front_.line_of(hash), word)) return found;
    const auto* found = behind_->find(word, hash);
    if (found == nullptr) return nullptr;
    front_.put(word, *found);
    return Table::find(front_.line_of(hash), word);
  }

  /// For words that will be asked for.
  void prefetch(std::uint64_t hash) const noexcept { behind_->prefetch(hash); }

 private:
  using entry = typename Table::entry;

  Table front_;
  shared_pretoken_table<Table>* behind_;
  // New words go behind some words later, when the line that they go to has arrived.
  std::array<entry, 8> to_add_{};
  std::size_t next_ = 0;
};

}  // namespace millrace::tokenizer::detail
