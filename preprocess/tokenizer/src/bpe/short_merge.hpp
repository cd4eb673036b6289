// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bpe/pair_table.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// A word that is being merged. Each symbol is stored at the index of its first byte. When two
/// symbols merge, the result replaces the first, and the second is removed.
struct short_word {
  static constexpr std::size_t max_bytes = 32;
  static constexpr std::size_t most_at_once = 32;  ///< maximum for one call of merge_short

  alignas(64) std::uint32_t symbols[max_bytes];
  /// The result of merging each symbol with the next symbol, or pair_table::none. The last element
  /// belongs to no symbol. It takes what is stored for a symbol that does not exist.
  alignas(64) std::uint32_t merges[max_bytes + 1];
  std::uint32_t there;   ///< one bit per symbol that is left
  std::uint32_t merged;  ///< bits of the two symbols of the latest merge

  /// A pair that the latest merge created and whose merge result is not known yet.
  struct open_pair {
    std::uint64_t pair;
    const pair_table::line* line;  ///< the line to search first
    std::uint32_t bit;             ///< the bit of the pair's left symbol, or 0 if there is no pair
  };
  open_pair left;
  open_pair right;

  /// Number of resulting symbols after merge_short. They are at the front of `symbols`.
  std::size_t count;
  const std::int32_t* ids() const noexcept {
    return reinterpret_cast<const std::int32_t*>(symbols);
  }
};

/// Initializes `word`: its symbols are the tokens of the bytes of `text`.
/// @return false if a byte has no token
/// @pre 0 < text.size() <= max_bytes
bool start_word(const pair_table& pairs, std::string_view text, short_word& word,
                instruction_set set) noexcept;

/// Merges the symbols of each word until no merge applies. As in bpe_merger, the adjacent pair of
/// lowest rank merges first, the leftmost pair on ties. Interleaves the words to overlap their
/// cache misses.
/// @param words          initialized by start_word, at most `most_at_once`
/// @param longest_bytes  upper bound on the size of each word in bytes; a bound of at most 16
///                       halves the time
void merge_short(const pair_table& pairs, std::span<short_word> words, std::size_t longest_bytes,
                 instruction_set set) noexcept;

}  // namespace millrace::tokenizer::detail
