// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// The differences between the patterns that this matcher implements.
struct cl100k_rules {
  std::size_t numbers_at_most = 3;  ///< 3: `\p{N}{1,3}`, 1: `\p{N}`
  bool contractions = true;
  bool one_space_at_end = false;   ///< `\s++$` is tried before `\s*[\r\n]`
  bool marks_are_letters = false;  ///< `[\p{L}\p{M}]+` instead of `\p{L}+`
  bool newline_tail = true;        ///< `[\r\n]*` after punctuation
  bool operator==(const cl100k_rules&) const = default;
};

/// The pattern of GPT-4 and its derivatives:
///
///   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
///   |\s*[\r\n]+|\s+(?!\S)|\s+
template <cl100k_rules Rules>
struct cl100k_matcher {
  static constexpr cl100k_rules rules = Rules;
  static constexpr unsigned used_kinds = word_kinds | kind::newline;
  static constexpr contraction_case contractions =
      Rules.contractions ? contraction_case::either : contraction_case::none;
  static constexpr bool uses_slash = false;

  /// With marks_are_letters, marks are treated as letters everywhere. The pattern also allows a
  /// mark as the prefix of a word, but this changes nothing: a mark before letters belongs to their
  /// run anyway.
  static unsigned kinds(std::uint32_t point) noexcept {
    const unsigned flags = flags_of(point);
    if (Rules.marks_are_letters && (flags & kind::mark) != 0) return kind::letter;
    return flags & 0xFF;
  }

  /// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_matcher::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    if (Rules.contractions) {
      if (const std::size_t size = contraction_size(text, begin)) return begin + size;
    }
    const walked_char first = char_at<cl100k_matcher>(text, begin);
    const std::size_t second = begin + first.size_bytes;
    if ((first.kinds & kind::letter) != 0) {
      return run_end<cl100k_matcher>(text, second, kind::letter);
    }
    if ((first.kinds & kind::number) != 0) {
      return run_end<cl100k_matcher>(text, second, kind::number, Rules.numbers_at_most - 1);
    }
    const unsigned next =
        second < text.size() ? char_at<cl100k_matcher>(text, second).kinds : unsigned{kind::space};
    if ((next & kind::letter) != 0 && (first.kinds & kind::newline) == 0) {
      return run_end<cl100k_matcher>(text, second, kind::letter);
    }
    const bool others = (first.kinds & kind::space) == 0;
    if (others || (text[begin] == ' ' && (next & word_kinds) == 0)) {
      const std::size_t end = other_end<cl100k_matcher>(text, second);
      return Rules.newline_tail ? skip_any(text, end, "\r\n") : end;
    }
    const space_run run = spaces_at<cl100k_matcher>(text, begin);
    return Rules.one_space_at_end && run.at_end ? run.end : newline_space_end(run);
  }
};

/// Like cl100k_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, cl100k_rules Rules>
[[gnu::always_inline]] inline cuts cuts_of(cl100k_matcher<Rules>, const window& w) noexcept {
  const mask other = w.valid & ~(w.letter | w.number | w.space);
  const mask plain = w.space & ~w.newline;
  const mask other_starts = other & ~(other << 1) & ~(w.blank << 1);
  mask starts = other_starts;
  starts |= w.letter & ~((w.letter | plain | other_starts) << 1);  // not after a prefix
  starts |= number_starts(w.number, Rules.numbers_at_most);

  const mask tail = Rules.newline_tail ? flooded(w.newline, (other << 1) & w.newline) : 0;
  starts |= space_starts<Isa>(w, tail, w.valid & ~w.space);
  const mask final_run = last_run(w.space & ~tail, w.valid);

  if (Rules.contractions) {
    starts |= ((w.contraction2 & starts) << 2) | ((w.contraction3 & starts) << 3);
  }
  if (w.at_end) {
    if (Rules.one_space_at_end) starts &= through_lowest(final_run);
    return {starts, w.valid, true, 0};
  }
  const mask apostrophes = Rules.contractions ? w.apostrophe & last_of(w.valid, 2) : 0;
  const mask decided = w.valid & through_lowest(final_run | apostrophes);
  return {starts, decided, false,
          resume_in(w.letter, w, decided) | resume_in_spaces(final_run, w.newline, w)};
}

}  // namespace millrace::tokenizer::detail
