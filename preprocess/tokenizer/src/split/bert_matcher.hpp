// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// The characters at which bert_matcher cuts units.
struct bert_cut_points {
  code_point_set space;
  code_point_set alone;  ///< punctuation
  code_point_set alone_with_chinese;
};
/// Built on the first call. Thread-safe.
const bert_cut_points& bert_cuts() noexcept;

/// The characters that end a unit and are units of their own. White space also ends a unit.
enum class apart : std::uint8_t { nothing, punctuation, punctuation_and_chinese };

/// Splits raw text into units that BERT's normalizer and pre-tokenizer process independently. The
/// ids of a text are the concatenated ids of its units:
///
///    ?P| ?[^P\s]+| white space      where P is punctuation or, with Chinese, an ideograph
///
/// A space belongs to the unit that follows it. This does not change the ids, because white space
/// produces no ids.
///
/// Units are independent, whichever steps the normalizer has, for these reasons:
///
/// - Four steps of the normalizer look at one character at a time: dropping controls, putting
///   spaces around ideographs, dropping marks and lowercasing. So does the pre-tokenizer, which
///   drops white space and isolates punctuation.
/// - The fifth step of the normalizer is decomposition. It looks only at runs of marks with a
///   nonzero combining class. Next to each cut is a character that is not such a mark. No step
///   changes the white space and punctuation that are cut points, and an ideograph has spaces
///   around it before it is decomposed.
/// - A character that clean_text drops is not a cut point, because dropping it joins its neighbors.
///
/// Units that are cut only at white space are also independent for all normal forms, because
/// nothing composes with white space, and for all pre-tokenizers that drop white space.
///
/// @tparam Apart  the characters that end a unit; punctuation_and_chinese if handle_chinese_chars
///                is on
template <apart Apart>
struct bert_matcher {
  static constexpr unsigned used_kinds = word_kinds;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  static constexpr unsigned alone = kind::number;

  /// The kind of a character: space, `alone`, or letter for all other characters.
  static unsigned kinds(std::uint32_t point) noexcept {
    if (point < 0x80 && ((point | 0x20) - 'a' < 26 || point - '0' < 10)) return kind::letter;
    const bert_cut_points& cuts = bert_cuts();
    if (cuts.space.contains(point)) return kind::space;
    if (Apart == apart::nothing) return kind::letter;
    const code_point_set& ends = Apart == apart::punctuation ? cuts.alone : cuts.alone_with_chinese;
    return ends.contains(point) ? alone : unsigned{kind::letter};
  }

  /// Returns the end of the unit that begins at `begin`. Same contract as r50k_matcher::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    const bool blank = text[begin] == ' ' && begin + 1 < text.size();
    const std::size_t body = blank ? begin + 1 : begin;
    const walked_char first = char_at<bert_matcher>(text, body);
    if (first.kinds == alone) return body + first.size_bytes;
    if (first.kinds == kind::letter) {
      return run_end<bert_matcher>(text, body + first.size_bytes, kind::letter);
    }
    const space_run run = spaces_at<bert_matcher>(text, begin);
    return run.at_end || run.last == run.begin || text[run.last] != ' ' ? run.end : run.last;
  }
};

/// Like bert_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, apart Apart>
[[gnu::always_inline]] inline cuts cuts_of(bert_matcher<Apart>, const window& w) noexcept {
  static_assert(bert_matcher<Apart>::alone == kind::number);
  const mask body = w.letter | w.number;
  mask starts = (w.number | (w.letter & ~(w.letter << 1))) & ~(w.blank << 1);
  starts |= w.space & (~(w.space << 1) | (w.blank & (body >> 1)));
  if (w.at_end) return {starts, w.valid, true, 0};
  const mask decided = w.valid & through_lowest(last_run(w.space, w.valid));
  return {starts, decided, false, resume_in(w.letter, w, decided)};
}

}  // namespace millrace::tokenizer::detail
