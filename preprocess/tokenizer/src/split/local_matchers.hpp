// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"
#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// Code for patterns in which each cut depends on only three characters, regardless of the length
/// of the pretoken. Given the kinds of three adjacent characters `a`, `b` and `c`,
/// Matcher::cuts_between returns whether there is a cut between `a` and `b`. `c` matters only if
/// Matcher::joins(b) is true: then `b` may belong to the same pretoken as `c`, as a space belongs
/// to the word after it.

/// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_matcher::end.
template <class Matcher>
std::size_t local_end(std::string_view text, std::size_t begin) noexcept {
  const walked_char first = char_at<Matcher>(text, begin);
  unsigned a = first.kinds;
  for (std::size_t at = begin + first.size_bytes; at < text.size();) {
    const walked_char b = char_at<Matcher>(text, at);
    const std::size_t next = at + b.size_bytes;
    const unsigned c = next < text.size() ? char_at<Matcher>(text, next).kinds : 0U;
    if (Matcher::cuts_between(a, b.kinds, c)) return at;
    a = b.kinds;
    at = next;
  }
  return text.size();
}

/// Like is_certain_cut, for the pattern of the matcher.
template <class Matcher>
bool is_certain_local_cut(std::uint32_t left, std::uint32_t right) noexcept {
  const unsigned before = Matcher::kinds(left);
  // If `left` may join the pretoken of `right`, cutting here would change the result.
  return !Matcher::joins(before) && Matcher::cuts_between(before, Matcher::kinds(right), 0);
}

/// BLOOM's pattern. Text between matches is kept as pretokens.
///
///    ?[^(\s|[.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C])]+
///
/// Oniguruma reads the inner brackets as a nested class, and reads all other characters in the
/// outer brackets literally. So parentheses and `|` end words too.
struct bloom_matcher {
  static constexpr unsigned used_kinds = kind::letter | kind::space;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  /// Returns letter for characters of words, space for U+0020, and 0 for all other characters.
  static unsigned kinds(std::uint32_t point) noexcept {
    constexpr std::u32string_view ends = U"()|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C";
    if (point == ' ') return kind::space;
    const bool is_space = (flags_of(point) & kind::space) != 0;
    return is_space || ends.find(char32_t{point}) != ends.npos ? 0U : unsigned{kind::letter};
  }

  static constexpr bool joins(unsigned kinds) noexcept { return kinds == kind::space; }

  static constexpr bool cuts_between(unsigned a, unsigned b, unsigned c) noexcept {
    if (joins(b) && c == kind::letter) return true;
    const bool word = b == kind::letter;
    return (a == kind::letter) != word && !(word && joins(a));
  }

  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    return local_end<bloom_matcher>(text, begin);
  }
};

/// Like bloom_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(bloom_matcher, const window& w) noexcept {
  const mask word = w.letter;
  const mask joined = w.blank & (word >> 1);
  const mask starts = joined | (~word & (word << 1)) | (word & ~((word | w.blank) << 1));
  if (w.at_end) return {starts & w.valid, w.valid, true, 0};
  return local_cuts(starts, w, w.blank);
}

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
struct deepseek_coder_matcher {
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
    return local_end<deepseek_coder_matcher>(text, begin);
  }
};

/// Like deepseek_coder_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at
/// once.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(deepseek_coder_matcher, const window& w) noexcept {
  const mask letter = w.letter;
  const mask punctuation = w.upper;
  const mask east = w.lower;
  const mask alone = w.newline | w.number;
  const mask rest = w.valid & ~(letter | punctuation);
  const mask joined = w.space & ((letter | punctuation) >> 1);
  const mask starts =
      joined | alone | (alone << 1) | (east ^ (east << 1)) |
      (((letter & ~(letter << 1)) | (punctuation & ~(punctuation << 1)) | (rest & ~(rest << 1))) &
       ~(joined << 1));
  if (w.at_end) return {starts & w.valid, w.valid, true, 0};
  return local_cuts(starts, w, w.space);
}

}  // namespace millrace::tokenizer::detail
