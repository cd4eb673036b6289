// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Finds places in a text where a word of a given set may begin. Compares only the first two bytes
/// of each word. Uses AVX2 if the CPU has it, and NEON on AArch64.
///
/// Immutable once filled; threads may share it.
class pair_filter {
 public:
  pair_filter() = default;  ///< finds nothing
  /// @param words  must not be empty strings
  explicit pair_filter(const std::vector<std::string_view>& words);

  /// Returns the first place at or after `from` where a word may begin, or text.size() if there is
  /// no such place. At that place, the text has the first two bytes of a word, or the only byte of
  /// a word of one byte. No word begins between `from` and that place.
  std::size_t next(std::string_view text, std::size_t from) const noexcept;

 private:
  // Two tables for one byte of the words: either the first byte or the second byte. `low` is
  // indexed by the low half of the byte, `high` by the high half. Each entry has one bit for each
  // of eight groups. The bit is set if a word of the group has a byte with that half.
  struct nibbles {
    std::array<std::uint8_t, 16> low{};
    std::array<std::uint8_t, 16> high{};
  };

  bool begins_at(std::string_view text, std::size_t at) const noexcept;
  // Like next(), but searches only whole blocks of 32 bytes. If no block has a match, returns the
  // offset of the first byte that it did not search.
  std::size_t skip_blocks(std::string_view text, std::size_t from) const noexcept;

  std::bitset<65536> pairs_;  // index: first byte of a word << 8 | second byte
  std::bitset<256> alone_;    // words of one byte
  // All pairs, if there are so few that comparing a text with each is faster than the tables below.
  static constexpr std::size_t most_listed = 3;
  std::array<std::array<char, 2>, most_listed> listed_{};
  std::size_t listed_count_ = 0;

  nibbles first_;
  nibbles second_;
  bool empty_ = true;
};

}  // namespace millrace::tokenizer::detail
