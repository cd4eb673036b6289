// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/token_table.hpp"
#include "core/table_io.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// Finds the seams of a word. A seam is a place where a word can be cut without changing its ids:
/// the fragments, encoded separately, give the ids of the whole word.
///
/// Every symbol that merging produces is a token. Suppose that no token contains the end of
/// character x directly followed by the beginning of character y. Then no merge crosses from an x
/// to a y that follows it, so there is a seam between them. Seams divide text without spaces, such
/// as Chinese or Japanese, into fragments of one or two characters. Such fragments repeat often,
/// but whole words of such text rarely do.
///
/// Pairs are stored as hashed bits. A collision hides a seam but never creates a false seam.
/// Immutable; threads may share it.
class seam_finder {
 public:
  explicit seam_finder(const token_table& tokens);
  explicit seam_finder(table_reader& in) { fields(in, *this); }
  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.pairs_);
    io(self.right_parts_);
    io(self.left_parts_);
    io(self.both_parts_);
  }

  /// True if looking for seams in `word` is worthwhile: one of its first two bytes begins a
  /// character of the range that includes Chinese, Japanese and Korean. In other scripts, most
  /// pairs of adjacent characters occur in a token, and whole words repeat.
  /// @pre word is not empty
  static bool pays_for(std::string_view word) noexcept {
    return word.size() > 1 && std::max(byte(word[0]), byte(word[1])) >= 0xE2;
  }

  /// Returns the size in bytes of the first fragment of `word`, which ends at the first seam. If
  /// `word` has no seam, the fragment is the whole word.
  /// @pre word is valid UTF-8, not empty
  std::size_t fragment_size(std::string_view word) const noexcept {
    code_point left = code_point_at(word, 0);
    std::size_t at = left.size_bytes;
    while (at < word.size()) {
      const code_point right = code_point_at(word, at);
      if (!may_cross(left.value, byte(word[at - 1]), right.value, byte(word[at]))) break;
      left = right;
      at += right.size_bytes;
    }
    return at;
  }

  /// The seams between the first characters of a word. Covers only the leading characters that have
  /// three bytes each, such as Chinese, Japanese and Korean characters.
  struct run {
    static constexpr std::size_t max_characters = 32;
    static constexpr std::size_t character_bytes = 3;
    std::size_t characters = 0;
    /// Bit i is set if there is a seam between character i and character i + 1.
    std::uint32_t seams = 0;

    std::size_t size_bytes() const noexcept { return characters * character_bytes; }
  };
  /// Finds all seams of the run at once. Does not branch on each seam, because the positions of
  /// seams are unpredictable.
  /// @pre word is valid UTF-8
  run first_run(std::string_view word) const noexcept {
    const std::size_t most = std::min(word.size() / run::character_bytes, run::max_characters);
    if (most == 0 || byte(word[0]) >> 4 != 0xE) return {};
    std::uint32_t seams = 0;
    std::uint32_t left = three_bytes(word, 0);
    std::size_t i = 1;
    for (; i < most; ++i) {
      const std::size_t at = i * run::character_bytes;
      if (byte(word[at]) >> 4 != 0xE) break;
      const std::uint32_t right = three_bytes(word, at);
      const std::uint32_t cross = bit(pairs_, of_pair(left, right)) |
                                  bit(right_parts_, of_part(left, byte(word[at]))) |
                                  bit(left_parts_, of_part(right, byte(word[at - 1]))) |
                                  bit(both_parts_, byte(word[at - 1]) << 8 | byte(word[at]));
      seams |= (cross ^ 1) << (i - 1);
      left = right;
    }
    return {i, seams};
  }

 private:
  static constexpr unsigned pair_bits = 20;
  static constexpr unsigned part_bits = 16;
  static constexpr std::uint32_t left_factor = 0x9E3779B1;
  static constexpr std::uint32_t right_factor = 0x85EBCA77;

  static std::uint32_t byte(char c) noexcept { return static_cast<unsigned char>(c); }
  static std::uint32_t mixed(std::uint32_t a, std::uint32_t b) noexcept {
    return (a * left_factor) ^ (b * right_factor + (b << 15));
  }
  static std::uint32_t three_bytes(std::string_view text, std::size_t at) noexcept {
    return (byte(text[at]) & 0xF) << 12 | (byte(text[at + 1]) & 0x3F) << 6 |
           (byte(text[at + 2]) & 0x3F);
  }
  template <class Bits>
  static std::uint32_t bit(const Bits& bits, std::uint32_t i) noexcept {
    return static_cast<std::uint32_t>(bits[i / 64] >> i % 64) & 1;
  }
  template <class Bits>
  static void set(Bits& bits, std::uint32_t i) noexcept {
    bits[i / 64] |= std::uint64_t{1} << i % 64;
  }
  static std::uint32_t of_pair(std::uint32_t left, std::uint32_t right) noexcept {
    return mixed(left, right) >> (32 - pair_bits);
  }
  static std::uint32_t of_part(std::uint32_t point, std::uint32_t byte) noexcept {
    return mixed(point, byte) >> (32 - part_bits);
  }

  // True if a token may contain `left` directly followed by `right`. Where a token contains only a
  // part of one of the two characters, only the byte next to the boundary is compared.
  bool may_cross(std::uint32_t left, std::uint32_t last_byte, std::uint32_t right,
                 std::uint32_t first_byte) const noexcept {
    return bit(pairs_, of_pair(left, right)) != 0 ||
           bit(right_parts_, of_part(left, first_byte)) != 0 ||
           bit(left_parts_, of_part(right, last_byte)) != 0 ||
           bit(both_parts_, last_byte << 8 | first_byte) != 0;
  }

  void add(std::string_view token, std::size_t at);

  // One table for each way in which a token can contain x and y: in whole or in part.
  std::vector<std::uint64_t> pairs_;               // whole x, whole y
  std::array<std::uint64_t, 1024> right_parts_{};  // whole x, beginning of y
  std::array<std::uint64_t, 1024> left_parts_{};   // end of x, whole y
  std::array<std::uint64_t, 1024> both_parts_{};   // end of x, beginning of y
};

}  // namespace millrace::tokenizer::detail
