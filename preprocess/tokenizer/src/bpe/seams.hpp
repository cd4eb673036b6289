// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "bpe/token_table.hpp"
#include "core/table_io.hpp"

namespace millrace::tokenizer::detail {

/// Cuts words at their seams. A seam is a place where a word can be cut without changing its ids:
/// the fragments, encoded separately, give the ids of the whole word.
///
/// Every symbol that merging produces is a token. Suppose that no token contains the end of
/// character x directly followed by the beginning of character y. Then no merge crosses from an x
/// to a y that follows it, so there is a seam between them. Seams divide text without spaces, such
/// as Chinese or Japanese, into fragments of one or two characters. Such fragments repeat often,
/// but whole words of such text rarely do.
///
/// Pairs of characters are stored as hashed bits. A collision hides a seam but never creates a
/// false seam. Immutable; threads may share it.
class seam_finder {
 public:
  explicit seam_finder(const token_table& tokens);
  explicit seam_finder(table_reader& in) { fields(in, *this); }
  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.pairs_);
    io(self.last_bytes_);
  }

  /// True if looking for seams in `word` is worthwhile: one of its first two bytes begins a
  /// character of the range that includes Chinese, Japanese and Korean. In other scripts, most
  /// pairs of adjacent characters occur in a token, and whole words repeat.
  /// @pre word is not empty
  static bool pays_for(std::string_view word) noexcept {
    return word.size() > 1 && std::max(byte(word[0]), byte(word[1])) >= 0xE2;
  }

  /// Cuts `text[begin, end)`, a word or the rest of one, at its seams. Stores the end of the first
  /// fragment in `end_of(0)`, of the second in `end_of(1)` and so on. The last fragment ends at
  /// `end`, unless there are more than `room` fragments.
  /// @param end_of  returns a reference to the place for an end, for indices less than `room`
  /// @return the number of fragments whose ends are stored
  /// @pre begin < end; room > 0; text[begin, end) is valid UTF-8
  template <class EndOf>
  std::size_t cut(const char* text, std::size_t begin, std::size_t end, std::size_t room,
                  EndOf end_of) const noexcept {
    std::size_t count = 0;
    const character first = character_at(text, begin, end);
    std::uint32_t left = hash(first.bytes);
    std::size_t at = begin + first.size;
    while (at < end && count < room) {
      // Characters of three bytes. Without a branch on each seam, because the places of seams are
      // unpredictable: an end that is no seam is overwritten.
      for (std::size_t most = std::min((end - at) / 3, room - count); most > 0; --most) {
        const std::uint32_t four = four_bytes(text + at - 1);
        if ((four & 0xF000) != 0xE000) break;
        const std::uint32_t right = four >> 8;
        end_of(count) = at;
        count += is_seam(left, four, right);
        left = hash(right);
        at += 3;
      }
      if (at == end || count == room) break;
      const character other = character_at(text, at, end);
      end_of(count) = at;
      count += is_seam(left, byte(text[at - 1]), other.bytes);
      left = hash(other.bytes);
      at += other.size;
    }
    if (count < room) end_of(count++) = end;
    return count;
  }

 private:
  static constexpr unsigned pair_bits = 20;
  static constexpr std::uint32_t factor = 0x9E3779B1;
  static constexpr std::uint32_t right_factor = 0x85EBCA77;

  struct character {
    std::uint32_t bytes;  // the first byte in the lowest bits
    std::size_t size;
  };

  static std::uint32_t byte(char c) noexcept { return static_cast<unsigned char>(c); }
  static std::uint32_t four_bytes(const char* from) noexcept {
    std::uint32_t four;
    std::memcpy(&four, from, sizeof four);
    if constexpr (std::endian::native == std::endian::big) four = __builtin_bswap32(four);
    return four;
  }
  static character character_at(const char* text, std::size_t at, std::size_t end) noexcept {
    const std::uint32_t lead = byte(text[at]);
    std::size_t size = 1;
    if (lead >= 0xC0) size = std::min<std::size_t>(end - at, lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4);
    std::uint32_t bytes = lead;
    for (std::size_t i = 1; i < size; ++i) bytes |= byte(text[at + i]) << (8 * i);
    return {bytes, size};
  }

  static std::uint32_t hash(std::uint32_t character) noexcept { return character * factor; }

  // Where the bit of a pair of whole characters is. The word depends on the left character and on
  // 10 bits of the right one, 8 of which are its first byte. So a token that ends inside the right
  // character fills four words.
  static std::uint32_t word_of(std::uint32_t left_hash, std::uint32_t right) noexcept {
    return (left_hash + (right & 0x30FF) * right_factor) >> (32 - (pair_bits - 6));
  }
  static std::uint32_t bit_of(std::uint32_t right) noexcept { return hash(right) >> 26; }
  // Where the right character is in last_bytes_: 4 bits of its first byte, then 6 of its third.
  static std::uint32_t index_of(std::uint32_t right) noexcept {
    return (right & 0xF) << 6 | (right >> 16 & 0x3F);
  }

  // 1 if no token contains the left character, or its end, directly followed by the character
  // `right`, or by its beginning; otherwise 0.
  // @param last_byte  the last byte of the left character, perhaps with other bytes above
  std::uint32_t is_seam(std::uint32_t left_hash, std::uint32_t last_byte,
                        std::uint32_t right) const noexcept {
    const std::uint64_t whole = pairs_[word_of(left_hash, right)] >> bit_of(right);
    const std::uint64_t partial = last_bytes_[index_of(right)] >> last_byte % 64;
    return static_cast<std::uint32_t>(~(whole | partial) & 1);
  }

  void add(std::string_view token, std::size_t at);

  std::vector<std::uint64_t> pairs_;  // tokens with the whole left character
  // Tokens with only an end of the left character: bit `last byte % 64`, for each right one.
  std::array<std::uint64_t, 1024> last_bytes_{};
};

}  // namespace millrace::tokenizer::detail
