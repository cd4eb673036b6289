// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "split/local_matchers.hpp"
#include "split/splitters.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {

/// Implements is_certain_cut for most patterns. The exceptions are the patterns for BERT, and the
/// patterns whose cuts are local (local_matchers.hpp).
///
/// Within a pretoken of any of these patterns, only letters, marks and a contraction can follow a
/// letter, and only numbers can follow a number. So a pretoken with a letter or a number at its end
/// is complete if the next character is of another class. Punctuation may be followed by newlines
/// and letters, but not by a space. White space is accepted only to the right of a cut, because a
/// cut within white space depends on the length of the run. This function need not find every
/// certain cut. It must never be wrong, and must find many cuts in ordinary text.
inline bool is_cut_by_most(std::uint32_t left, std::uint32_t right) noexcept {
  const auto is_ascii = [](std::uint32_t c) { return c < 0x80; };
  const unsigned before = flags_of(left);
  const unsigned behind = flags_of(right);
  const bool letter = (before & char_flags::letter) != 0;
  // Patterns disagree on which characters outside ASCII are numbers.
  const bool digit = is_ascii(left) && (before & char_flags::number) != 0;
  if (!letter && !digit) {
    const bool mark_or_sign = (before & (char_flags::punctuation | char_flags::symbol)) != 0;
    return is_ascii(left) && mark_or_sign && right == ' ';
  }
  if ((behind & char_flags::space) != 0) return true;
  if (is_ascii(right)) {
    if (letter && (behind & char_flags::number) != 0) return true;
    if (digit && (behind & char_flags::letter) != 0) return true;
    // An apostrophe may begin a contraction, and some patterns include the contraction in the word.
    return right != '\'' && (behind & (char_flags::punctuation | char_flags::symbol)) != 0;
  }
  // DeepSeek's pattern matches the signs in the Kana blocks in the same split as Kana.
  const bool among_kana = right >= 0x3040 && right < 0x3100;
  // Kimi's pattern keeps all Han characters together.
  return !among_kana && (behind & char_flags::han) == 0 && (behind & char_flags::punctuation) != 0;
}

/// True if a pretoken ends between `left` and `right` in every text where they are adjacent, and if
/// the text before that cut is always split as if the text ended there.
/// @pre `wanted` is not one of the patterns for BERT
inline bool is_certain_cut(pattern wanted, std::uint32_t left, std::uint32_t right) noexcept {
  switch (wanted) {
    case pattern::deepseek_coder:
      return is_certain_local_cut<deepseek_coder_matcher>(left, right);
    case pattern::bloom:
      return is_certain_local_cut<bloom_matcher>(left, right);
    default:
      return is_cut_by_most(left, right);
  }
}

}  // namespace millrace::tokenizer::detail
