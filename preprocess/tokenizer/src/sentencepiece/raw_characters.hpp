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

/// Classifies characters by how normalization affects them. So a text can be cut next to some
/// characters before it is normalized.
///
/// Each character is in one of three classes. A space is an ASCII character that becomes a space. A
/// character is odd if it changes in any other way, or if a rule may combine it with preceding
/// characters. All other characters are plain. So no rule spans the boundary between two characters
/// that are not odd. But a plain character may change if an odd character follows it. Immutable;
/// threads may share it.
class raw_characters {
 public:
  raw_characters() : raw_characters(charsmap(), false) {}

  /// @param folds_symbol  true if U+2581 becomes a space
  raw_characters(const charsmap& rules, bool folds_symbol);

  /// False if characters cannot be classified. There are three reasons: a rule changes U+0020, the
  /// text of a rule has an ASCII character after its first character, or
  /// charsmap::for_each_character returns false.
  bool is_known() const noexcept { return known_; }

  bool is_space(std::uint32_t character) const noexcept {
    return character < spaces_.size() && spaces_[character];
  }
  bool is_odd(std::uint32_t character) const noexcept {
    if (character > last_character) return true;  // bytes that are not UTF-8
    return (odd_[character / 64] >> (character % 64) & 1) != 0;
  }
  /// True if any rule replaces several characters together. Only the first of them can be ASCII.
  bool has_sequences() const noexcept { return has_sequences_; }

  /// True if every character is plain or U+0020.
  bool all_plain(std::string_view text) const noexcept;

 private:
  static constexpr std::uint32_t last_character = 0x10FFFF;

  void set_odd(std::uint32_t character);

  bool known_ = true;
  bool has_sequences_ = false;
  std::array<bool, 128> spaces_{};
  std::vector<std::uint64_t> odd_ = std::vector<std::uint64_t>((last_character + 1) / 64);
};

}  // namespace millrace::tokenizer::detail
