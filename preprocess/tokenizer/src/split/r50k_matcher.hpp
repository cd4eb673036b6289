// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// GPT-2's pattern:
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// @tparam NumbersApart  first isolate every number, one character at a time (StarCoder). The
///                       pattern then treats the place before each number as the end of the text.
/// @tparam DigitsStage   recognize the same numbers as the pre-tokenizer Digits. Some of these
///                       numbers are from a later version of Unicode.
template <bool NumbersApart, bool DigitsStage = false>
struct r50k_matcher {
  static constexpr bool numbers_apart = NumbersApart;
  static constexpr unsigned used_kinds = word_kinds;
  static constexpr contraction_case contractions = contraction_case::lower;
  static constexpr bool uses_slash = false;

  static unsigned kinds(std::uint32_t point) noexcept {
    const unsigned kinds = flags_of(point) & 0xFF;
    if (!DigitsStage || point < 0x80) return kinds;
    static const code_point_set numbers(reference_set::numeric);
    return numbers.contains(point) ? unsigned{kind::number} : kinds & ~unsigned{kind::number};
  }

  /// Returns the end of the pretoken that begins at `begin`. The walkers of all matchers have this
  /// signature.
  ///
  /// @param text  valid UTF-8; on invalid input the ends still advance and stay in bounds
  /// @pre begin < text.size(), and `begin` is 0 or the end of a pretoken
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    if (const std::size_t size = lower_contraction_size(text, begin)) return begin + size;
    const bool blank = text[begin] == ' ' && begin + 1 < text.size();
    const std::size_t body = blank ? begin + 1 : begin;
    const walked_char first = char_at<r50k_matcher>(text, body);
    if ((first.kinds & kind::letter) != 0) {
      return run_end<r50k_matcher>(text, body + first.size_bytes, kind::letter);
    }
    if ((first.kinds & kind::number) != 0) {
      if (numbers_apart) return begin + (blank ? 1 : first.size_bytes);
      return run_end<r50k_matcher>(text, body + first.size_bytes, kind::number);
    }
    if ((first.kinds & kind::space) == 0) {
      return other_end<r50k_matcher>(text, body + first.size_bytes);
    }
    return plain_space_end(spaces_at<r50k_matcher>(text, begin, numbers_apart ? kind::number : 0U));
  }
};

/// Like r50k_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, bool NumbersApart, bool DigitsStage>
[[gnu::always_inline]] inline cuts cuts_of(r50k_matcher<NumbersApart, DigitsStage>,
                                           const window& w) noexcept {
  const mask other = w.valid & ~(w.letter | w.number | w.space);
  const mask numbers = NumbersApart ? 0 : w.number & (w.number << 1);
  const mask same = (w.letter & (w.letter << 1)) | (other & (other << 1)) | numbers;
  const mask next = NumbersApart ? w.letter | other : w.valid & ~w.space;
  mask starts = w.valid & ~w.space & ~same & ~(w.blank << 1);
  if (NumbersApart) starts |= w.number;
  starts |= w.space & (~(w.space << 1) | (next >> 1));

  const mask two = w.contraction2 & starts;
  const mask three = w.contraction3 & starts;
  starts &= ~((two | three) << 1);
  starts |= (two << 2) | (three << 3);

  if (w.at_end) return {starts, w.valid, true, 0};
  const mask final_run = last_run(w.space, w.valid);
  const mask decided = w.valid & through_lowest(final_run | (w.apostrophe & last_of(w.valid, 2)));
  return {starts, decided, false,
          resume_in(w.letter, w, decided) | resume_in_spaces(final_run, 0, w)};
}

}  // namespace millrace::tokenizer::detail
