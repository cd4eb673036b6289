// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// The characters at which units are cut (bert_group).
struct bert_cut_points {
  code_point_set space;
  code_point_set alone;  ///< punctuation
  code_point_set alone_with_chinese;
};
/// Made at the first call. Thread safe.
const bert_cut_points& bert_cuts() noexcept;

/// Units of raw text that BERT's normalizer and pre-tokenizer treat each by itself, so that the ids
/// of a text are those of its units, one after another:
///
///    ?P| ?[^P\s]+| white space      where P is punctuation or, with Chinese, an ideograph
///
/// A space goes with the unit behind it, since white space gives no ids.
///
/// Why units are independent, whichever steps the normalizer has: to drop controls, to put spaces
/// around ideographs, to drop marks and to lower the case look at one character at a time, and so
/// does the pre-tokenizer, which drops white space and isolates punctuation. Decomposing looks at
/// runs of marks (of a combining class that is not 0) alone, and next to each cut is a character
/// that is none: white space and punctuation that count here are kept as they are by every step, an
/// ideograph has spaces around it by then. What clean_text drops does not count, for it joins what
/// stands on its sides.
///
/// @tparam Chinese  handle_chinese_chars is on
template <bool Chinese>
struct bert_group {
  static constexpr unsigned used_kinds = word_kinds;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  static constexpr unsigned alone = kind::number;

  /// One of space, alone and letter, which is everything else.
  static unsigned kinds(std::uint32_t point) noexcept {
    if (point < 0x80 && ((point | 0x20) - 'a' < 26 || point - '0' < 10)) return kind::letter;
    const bert_cut_points& cuts = bert_cuts();
    if (cuts.space.contains(point)) return kind::space;
    const code_point_set& apart = Chinese ? cuts.alone_with_chinese : cuts.alone;
    return apart.contains(point) ? alone : unsigned{kind::letter};
  }

  /// As r50k_group::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    const bool blank = text[begin] == ' ' && begin + 1 < text.size();
    const std::size_t body = blank ? begin + 1 : begin;
    const walked_char first = char_at<bert_group>(text, body);
    if (first.kinds == alone) return body + first.size_bytes;
    if (first.kinds == kind::letter) {
      return run_end<bert_group>(text, body + first.size_bytes, kind::letter);
    }
    const space_run run = spaces_at<bert_group>(text, begin);
    return run.at_end || run.last == run.begin || text[run.last] != ' ' ? run.end : run.last;
  }
};

}  // namespace millrace::tokenizer::detail
