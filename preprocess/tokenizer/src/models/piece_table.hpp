// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/huge_array.hpp"
#include "text/token_trie.hpp"

namespace millrace::tokenizer::detail {

/// Finds the longest token (here also called a piece) that begins a text. Tokens for the beginning
/// of a word and those that continue a word are separate. Immutable once built; threads may share
/// it.
///
/// It tries only the lengths of tokens that share the text's first bytes, longest first. Each try
/// is one look-up in a hash table of 16-byte slots, which hold both token and id. The look-ups are
/// independent of each other, whereas a trie must process each byte before the next. Tokens that do
/// not fit in a slot are in a trie.
class piece_table {
 public:
  static constexpr std::int32_t none = -1;
  static constexpr std::int32_t max_id = (1 << 24) - 1;
  /// Number of bytes read at a text, even if it is shorter.
  static constexpr std::size_t read_bytes = 16;

  /// @param count  maximum number of pieces
  explicit piece_table(std::size_t count);

  /// @pre the piece is not empty and was not added yet, 0 <= id <= max_id
  void add(std::string_view piece, bool continues, std::int32_t id);

  struct match {
    std::int32_t id = none;
    std::size_t size_bytes = 0;
  };
  /// The longest piece that begins `text`.
  /// @pre text is not empty, and read_bytes bytes may be read at it
  match longest(std::string_view text, bool continues) const noexcept;

 private:
  static constexpr std::size_t most_bytes = 12;          // of a piece in a slot
  static constexpr std::size_t longer = most_bytes + 1;  // represents all lengths in the tries
  static constexpr std::size_t first_bytes = 4;
  static constexpr unsigned first_bits = 16;

  // A slot for one piece. `low`: its first 8 bytes. `high`: 4 more bytes, the id (24 bits), and a
  // byte that holds the size and whether the piece continues a word.
  struct slot {
    std::uint64_t low = 0;
    std::uint64_t high = 0;  // 0: free
  };
  static constexpr std::uint64_t id_bits = std::uint64_t{0xFFFFFF} << 32;

  static slot key_of(const char* text, std::size_t size, bool continues) noexcept;
  static std::size_t place_of_first(const char* text, bool continues) noexcept;
  std::size_t home(const slot& key) const noexcept;

  huge_array<slot> slots_;  // size is a power of two; at most two thirds full
  int shift_;
  // Bit n is set if there are pieces of n bytes. Pieces shorter than first_bytes are indexed by
  // their first byte, others by a hash of their first bytes, which may collide.
  std::vector<std::uint16_t> short_lengths_;
  std::vector<std::uint16_t> lengths_;
  token_trie longer_[2];
};

}  // namespace millrace::tokenizer::detail
