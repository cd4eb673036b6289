// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bpe/pair_table.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// A word that is being merged. Its symbols have places from 1 on, and none moves. When two symbols
/// merge, the result replaces the first, and the second leaves the list.
template <std::size_t MaxBytes>
struct merging_word {
  static_assert(std::has_single_bit(MaxBytes) && MaxBytes <= 128);
  static constexpr std::size_t max_bytes = MaxBytes;
  static constexpr int place_bits = std::countr_zero(MaxBytes);

  /// By place: the merge of the symbol with the next one. It is the result, and `place_bits` bits
  /// for the place below it; so the least of all is the next merge, the leftmost on ties.
  /// `no_merge` or more if there is none.
  alignas(64) std::uint32_t merges[max_bytes + 1];
  /// By place. There is pair_table::no_symbol at place 0 and after the last symbol.
  alignas(64) std::uint32_t symbols[max_bytes + 2];
  std::uint8_t next[max_bytes + 2];    ///< by place: the place of the next symbol
  std::uint8_t before[max_bytes + 2];  ///< by place: the place of the symbol before
  std::size_t size;                    ///< number of symbols before the first merge

  static constexpr std::uint32_t no_merge = std::uint32_t{1} << 31;
  static_assert(pair_table::max_id < std::int32_t{1} << (31 - place_bits));

  /// A pair that the latest merge created and whose own merge is not known yet.
  struct open_pair {
    pair_table::place in_table;
    std::uint32_t place;  ///< of its first symbol
  };
  open_pair left;
  open_pair right;

  /// Number of resulting symbols after all merges. They are at the front of `symbols`.
  std::size_t count;
  std::span<const std::int32_t> ids() const noexcept {
    return {reinterpret_cast<const std::int32_t*>(symbols), count};
  }

  /// Begins a word of `symbol_count` symbols, none of which merges.
  /// @pre 0 < symbol_count <= max_bytes
  void start(std::size_t symbol_count) noexcept;
  /// @param merge  the result of the merge with the next symbol, or pair_table::none, as for the
  ///               last symbol
  void set(std::size_t index, std::uint32_t symbol, std::uint32_t merge) noexcept {
    const std::size_t place = index + 1;
    symbols[place] = symbol;
    merges[place] = with_place(merge, static_cast<std::uint32_t>(place));
  }
  // The last place needs one bit more, but its symbol never merges.
  static std::uint32_t with_place(std::uint32_t merge, std::uint32_t place) noexcept {
    return merge << place_bits | place;
  }
};

struct short_word : merging_word<32> {
  static constexpr std::size_t most_at_once = 32;  ///< maximum for one call of merge_short
};
using medium_word = merging_word<128>;

/// Initializes `word`: its symbols are the tokens of the bytes of `text`.
/// @return false if a byte has no token
/// @pre 0 < text.size() <= max_bytes
bool start_word(const pair_table& pairs, std::string_view text, short_word& word) noexcept;
bool start_word(const pair_table& pairs, std::string_view text, medium_word& word) noexcept;

/// Merges the symbols of each word until no merge applies. As in bpe_merger, the adjacent pair of
/// lowest rank merges first, the leftmost pair on ties. Interleaves the words to overlap their
/// cache misses.
/// @param words          initialized, at most `most_at_once`
void merge_short(const pair_table& pairs, std::span<short_word> words,
                 instruction_set set) noexcept;

/// The same for one word, which is initialized.
void merge_medium(const pair_table& pairs, medium_word& word, instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
