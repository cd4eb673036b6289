// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/raw_characters.hpp"

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

raw_characters::raw_characters(const charsmap& rules, bool folds_symbol) {
  spaces_[' '] = true;
  bool has_ascii_sequences = false;
  known_ = rules.for_each_character([&](const charsmap::character& c) {
    if (!c.begins_rule) {
      set_odd(c.value);  // its rule applies only where this character follows others
      has_sequences_ = true;
      has_ascii_sequences = has_ascii_sequences || c.value < 0x80;
    } else if (c.replacement && c.value < spaces_.size() && *c.replacement == " ") {
      spaces_[c.value] = true;
    } else if (c.replacement) {
      set_odd(c.value);
    }
  });
  if (!rules.empty()) set_odd(0);  // for_each_character skips U+0000
  if (folds_symbol) set_odd(code_point_at(space_symbol, 0).value);
  for (std::uint32_t c = 0; c < spaces_.size(); ++c) spaces_[c] = spaces_[c] && !is_odd(c);
  known_ = known_ && spaces_[' '] && !has_ascii_sequences;
}

void raw_characters::set_odd(std::uint32_t character) {
  if (character > last_character) return;  // does not occur in texts
  odd_[character / 64] |= std::uint64_t{1} << (character % 64);
}

bool raw_characters::all_plain(std::string_view text) const noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const code_point c = code_point_at(text, at);
    if (c.value != ' ' && (is_odd(c.value) || is_space(c.value))) return false;
    at += c.size_bytes;
  }
  return true;
}

}  // namespace millrace::tokenizer::detail
