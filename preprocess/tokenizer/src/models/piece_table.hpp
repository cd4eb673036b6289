// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/huge_array.hpp"
#include "text/token_trie.hpp"

namespace millrace::tokenizer::detail {

/// Finds the longest token (also called a piece here) at the beginning of a text. Tokens for the
/// beginning of a word are separate from tokens that continue a word. Immutable once built; threads
/// may share it.
///
/// It tries only some lengths, longest first: the lengths of those tokens whose first bytes are the
/// same as the first bytes of the text. Each try is one look-up in a hash table. A slot of the
/// table has 16 bytes and holds both the token and its id. The look-ups are independent of each
/// other, whereas a trie must process each byte before the next. Tokens that do not fit in a slot
/// are in a trie.
class piece_table {
 public:
  static constexpr std::int32_t none = -1;
  static constexpr std::int32_t max_id = (1 << 24) - 1;
  /// Number of bytes that longest() reads from the start of a text, even if the text is shorter.
  static constexpr std::size_t read_bytes = 16;

  /// @param count  maximum number of pieces
  explicit piece_table(std::size_t count);

  /// @pre the piece is not empty and was not added before, 0 <= id <= max_id
  void add(std::string_view piece, bool continues, std::int32_t id);

  struct match {
    std::int32_t id = none;
    std::size_t size_bytes = 0;
  };
  /// The longest piece at the beginning of `text`.
  /// @pre text is not empty, and read_bytes bytes can be read from its start
  match longest(std::string_view text, bool continues) const noexcept;

 private:
  static constexpr std::size_t most_bytes = 12;          // maximum size of a piece in a slot
  static constexpr std::size_t longer = most_bytes + 1;  // stands for all sizes above most_bytes
  static constexpr std::size_t first_bytes = 4;
  static constexpr unsigned first_bits = 16;

  // A slot for one piece. `low` holds its first 8 bytes. `high` holds 4 more bytes, the id (24
  // bits), and a byte with the size of the piece and whether it continues a word.
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
  // Bit n is set if there are pieces of n bytes. short_lengths_ is for pieces of fewer than
  // first_bytes bytes, and its index is their first byte. lengths_ is for all other pieces, and its
  // index is a hash of their first bytes, which may collide.
  std::vector<std::uint16_t> short_lengths_;
  std::vector<std::uint16_t> lengths_;
  token_trie longer_[2];
};

}  // namespace millrace::tokenizer::detail
