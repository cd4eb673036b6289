// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/local_cuts.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// The splits of DeepSeek Coder. Each split is applied to all pieces of the previous split. Text
/// between two matches stays a pretoken.
///
///   [\r\n]
///   \s?\p{L}+
///   \s?\p{P}+
///   [\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+
///   each number by itself, as in the pre-tokenizer Digits
///
/// The fourth split also cuts the matches of the second and third splits. It cuts a word where
/// Latin letters change to Han, and separates Han from a space before it.
struct deepseek_coder_group {
  static constexpr unsigned punctuation = kind::upper;
  static constexpr unsigned east = kind::lower;  ///< in the ranges of the fourth split
  static constexpr unsigned words = kind::letter | punctuation;
  static constexpr unsigned used_kinds = word_kinds | kind::newline | punctuation | east;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  /// A character has at most one of the kinds number, space, newline, letter and punctuation. It
  /// may also have the kind `east`.
  static unsigned kinds(std::uint32_t point) noexcept {
    static const code_point_set numbers(reference_set::numeric);
    const unsigned flags = flags_of(point);
    const bool fourth_split =
        (point >= 0x0800 && point <= 0x9FA5) || (point >= 0xAC00 && point <= 0xD7FF);
    const unsigned side = fourth_split ? east : 0U;
    if ((flags & kind::newline) != 0) return kind::newline;
    if (numbers.contains(point)) return kind::number | side;
    if ((flags & kind::punctuation) != 0) return punctuation | side;
    return (flags & (kind::letter | kind::space)) | side;
  }

  static constexpr bool joins(unsigned kinds) noexcept { return (kinds & kind::space) != 0; }

  static constexpr bool cuts_between(unsigned a, unsigned b, unsigned c) noexcept {
    if (((a | b) & (kind::newline | kind::number)) != 0 || ((a ^ b) & east) != 0) return true;
    if (joins(b) && (c & words) != 0) return true;
    return (a & words) != (b & words) && !(joins(a) && (b & words) != 0);
  }

  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    return local_end<deepseek_coder_group>(text, begin);
  }
};

}  // namespace millrace::tokenizer::detail
