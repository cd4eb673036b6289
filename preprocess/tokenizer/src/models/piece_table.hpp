// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/huge_array.hpp"
#include "text/token_trie.hpp"

namespace millrace::tokenizer::detail {

/// Tokens of which the longest that begins a text is wanted: some for the begin of a word, some for
/// what continues it. Immutable once built, shared by threads.
///
/// A text is asked for the lengths alone that tokens with its first bytes have, longest first. Each
/// question is one look-up in a table of 16 bytes a slot, which holds token and id alike, and waits
/// for no other; in a trie each byte waits for the one before. Tokens of more bytes than a slot has
/// are in a trie nevertheless.
class piece_table {
 public:
  static constexpr std::int32_t none = -1;
  static constexpr std::int32_t max_id = (1 << 24) - 1;
  /// Bytes that are read at a text, however short it is.
  static constexpr std::size_t read_bytes = 16;

  /// @param count  how many pieces will be added at most
  explicit piece_table(std::size_t count);

  /// @pre the piece is not empty and not there yet, 0 <= id <= max_id
  void add(std::string_view piece, bool continues, std::int32_t id);

  struct match {
    std::int32_t id = none;
    std::size_t size_bytes = 0;
  };
  /// The longest piece that begins `text`.
  /// @pre text is not empty, read_bytes may be read at it
  match longest(std::string_view text, bool continues) const noexcept;

 private:
  static constexpr std::size_t most_bytes = 12;          // in a slot
  static constexpr std::size_t longer = most_bytes + 1;  // among lengths: any that are in the tries
  static constexpr std::size_t first_bytes = 4;
  static constexpr unsigned first_bits = 16;

  // A piece: eight bytes; four more, its id, and its size with whether it continues.
  struct slot {
    std::uint64_t low = 0;
    std::uint64_t high = 0;  // 0: free
  };
  static constexpr std::uint64_t id_bits = std::uint64_t{0xFFFFFF} << 32;

  static slot key_of(const char* text, std::size_t size, bool continues) noexcept;
  static std::size_t place_of_first(const char* text, bool continues) noexcept;
  std::size_t home(const slot& key) const noexcept;

  huge_array<slot> slots_;  // a power of two, at most two thirds full
  int shift_;
  // Bit n: there are pieces of n bytes. Of pieces shorter than first_bytes, by their first byte; of
  // others, by a hash of their first ones, which several may share.
  std::vector<std::uint16_t> short_lengths_;
  std::vector<std::uint16_t> lengths_;
  token_trie longer_[2];
};

}  // namespace millrace::tokenizer::detail
