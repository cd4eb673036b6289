// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sentencepiece/model_file.hpp"
#include "text/charsmap.hpp"

namespace millrace::tokenizer::detail {

/// What normalization makes of single characters: which ones can be told without it, so that a text
/// may be cut next to them before it is normalized.
///
/// A character is a space if it becomes one; odd if it becomes something else, or may become
/// something together with what is before it; plain otherwise. So no rule reaches over a boundary
/// between two characters that are not odd; but with an odd one behind it, a plain one may change.
/// Immutable, shared by threads.
class raw_characters {
 public:
  raw_characters() : raw_characters(charsmap(), false) {}

  /// @param folds_symbol  U+2581 becomes a space
  raw_characters(const charsmap& rules, bool folds_symbol);

  /// Whether rules are such that characters can be told apart at all.
  bool is_known() const noexcept { return known_; }

  bool is_space(std::uint32_t character) const noexcept {
    return character < spaces_.size() && spaces_[character];
  }
  bool is_odd(std::uint32_t character) const noexcept {
    const std::uint32_t page = character >> page_bits;
    if (page >= pages_.size()) return true;  // bytes that are no UTF-8
    const std::size_t bit =
        (std::size_t{pages_[page]} << page_bits) + (character & ((1U << page_bits) - 1));
    return (bits_[bit / 64] >> (bit % 64) & 1) != 0;
  }
  /// Whether some characters become something together, of which none but the first is ASCII.
  bool has_sequences() const noexcept { return has_sequences_; }

  /// Every character is plain or U+0020.
  bool all_plain(std::string_view text) const noexcept;

 private:
  static constexpr unsigned page_bits = 8;

  void set_odd(std::uint32_t character);

  bool known_ = true;
  bool has_sequences_ = false;
  std::array<bool, 128> spaces_{};
  std::vector<std::uint16_t> pages_ = std::vector<std::uint16_t>(0x110000 >> page_bits);
  // One bit a character, a page where any is odd; page 0 has none.
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>((1U << page_bits) / 64);
};

}  // namespace millrace::tokenizer::detail
