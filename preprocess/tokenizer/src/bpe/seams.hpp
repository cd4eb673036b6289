// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bpe/token_table.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// Where a word may be cut so that its fragments, encoded each on its own, give the ids of the
/// whole.
///
/// Every symbol that merging ever makes is a token. So where no token holds the end of character x
/// and the beginning of character y next to each other, no merge crosses from an x to a y behind
/// it: there is a seam. Text without spaces, in Chinese or Japanese say, falls into fragments of a
/// character or two, which come again and again where whole words do not.
///
/// Pairs are kept as hashed bits: two that share a bit cost a seam, never a wrong one.
/// Immutable, shared by threads.
class seam_finder {
 public:
  explicit seam_finder(const token_table& tokens);

  /// Whether it pays to look for seams in `word`: where few pairs of a script are without a token
  /// that crosses them, words come again as a whole. Chinese, Japanese and Korean characters begin
  /// with the bytes that are asked for.
  /// @pre word is not empty
  static bool pays_for(std::string_view word) noexcept {
    return word.size() > 1 && std::max(byte(word[0]), byte(word[1])) >= 0xE2;
  }

  /// Size of the first fragment of `word` in bytes: up to its first seam, or all of it.
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

 private:
  static constexpr unsigned pair_bits = 20;
  static constexpr unsigned part_bits = 16;

  static std::uint32_t byte(char c) noexcept { return static_cast<unsigned char>(c); }
  static std::uint32_t mixed(std::uint32_t a, std::uint32_t b) noexcept {
    return (a * 0x9E3779B1U) ^ (b * 0x85EBCA77U + (b << 15));
  }
  template <class Bits>
  static bool has(const Bits& bits, std::uint32_t i) noexcept {
    return (bits[i / 64] >> i % 64 & 1) != 0;
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

  // Tokens that begin or end inside a character are told by the one byte of it next to the seam.
  bool may_cross(std::uint32_t left, std::uint32_t last_byte, std::uint32_t right,
                 std::uint32_t first_byte) const noexcept {
    return has(pairs_, of_pair(left, right)) || has(right_parts_, of_part(left, first_byte)) ||
           has(left_parts_, of_part(right, last_byte)) ||
           has(both_parts_, last_byte << 8 | first_byte);
  }

  void add(std::string_view token, std::size_t at);

  std::vector<std::uint64_t> pairs_;               // whole x, whole y
  std::array<std::uint64_t, 1024> right_parts_{};  // whole x, the beginning of y
  std::array<std::uint64_t, 1024> left_parts_{};   // the end of x, whole y
  std::array<std::uint64_t, 1024> both_parts_{};   // the end of x, the beginning of y
};

}  // namespace millrace::tokenizer::detail
