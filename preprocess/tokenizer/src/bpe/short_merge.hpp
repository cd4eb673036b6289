// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bpe/pair_table.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// A word while it is merged. A symbol stays where its first byte was; one that is merged into the
/// symbol before it is gone.
struct short_word {
  static constexpr std::size_t max_bytes = 32;
  static constexpr std::size_t most_at_once = 32;  ///< words for merge_short

  alignas(64) std::uint32_t symbols[max_bytes];
  /// What a symbol and the next one merge to, or pair_table::none.
  alignas(64) std::uint32_t merges[max_bytes];
  std::uint32_t there;   ///< a bit for each symbol that is not gone
  std::uint32_t merged;  ///< bits of the two symbols of the latest merge

  /// The two pairs that the latest merge made, whose merges are not known yet.
  struct open_pair {
    std::uint64_t pair;
    const pair_table::line* line;  ///< where it would be
    std::uint32_t bit;             ///< of its left symbol; 0: there is no such pair
  };
  open_pair left;
  open_pair right;

  /// How many symbols merge_short has left: the first of `symbols`.
  std::size_t count;
  const std::int32_t* ids() const noexcept {
    return reinterpret_cast<const std::int32_t*>(symbols);
  }
};

/// The bytes of a word as symbols.
/// @return false if a byte has no token
/// @pre 0 < text.size() <= max_bytes
bool start_word(const pair_table& pairs, std::string_view text, short_word& word,
                instruction_set set) noexcept;

/// Merges each word as far as it goes: of all neighbours with a merge the lowest first, the
/// leftmost on ties; the same as bpe_merger. Words take turns, so that none waits for its cache
/// misses.
/// @param words  started ones, at most most_at_once
/// @param longest_bytes  no word is longer: up to 16 take half the work
void merge_short(const pair_table& pairs, std::span<short_word> words, std::size_t longest_bytes,
                 instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
