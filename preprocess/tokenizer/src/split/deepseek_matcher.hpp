// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// The three splits of DeepSeek-V3. Each split is applied to all pieces of the previous split. Text
/// between two matches stays a pretoken.
///
///   \p{N}{1,3}
///   [\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+
///   A[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*
///     |\s*[\r\n]+|\s+(?!\S)|\s+      where A is any of the ASCII punctuation and symbols
///
/// No alternative of the last split matches a control character or an unassigned character by
/// itself. If no letter follows such a character, it stays in the text between two matches, which
/// is one pretoken.
struct deepseek_matcher {
  static constexpr unsigned symbol = kind::upper;  ///< \p{P} or \p{S}
  static constexpr unsigned cjk = kind::lower;     ///< in the ranges of the second split
  static constexpr unsigned used_kinds = word_kinds | kind::newline | symbol | cjk;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  /// A character has at most one of the kinds number, space, letter and symbol. It may also have
  /// the kind `cjk`, and a space may also have the kind newline.
  ///
  /// A mark counts as a letter: the pattern's runs of letters include marks. A mark that is the
  /// prefix of such a run belongs to the same pretoken anyway.
  static unsigned kinds(std::uint32_t point) noexcept {
    const unsigned flags = flags_of(point);
    if ((flags & kind::number) != 0) return kind::number;
    const bool second_split =
        (point >= 0x4E00 && point <= 0x9FA5) || (point >= 0x3040 && point <= 0x30FF);
    const unsigned side = second_split ? cjk : 0U;
    if ((flags & (kind::letter | kind::mark)) != 0) return kind::letter | side;
    if ((flags & (kind::punctuation | kind::symbol)) != 0) return symbol | side;
    return (flags & (kind::space | kind::newline)) | side;
  }

  /// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_matcher::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    const walked_char first = char_at<deepseek_matcher>(text, begin);
    const std::size_t second = begin + first.size_bytes;
    if ((first.kinds & kind::number) != 0) {
      return run_end<deepseek_matcher>(text, second, kind::number, 2);
    }
    const unsigned next = kinds_at(text, second);
    if (first.kinds == symbol && first.size_bytes == 1) {
      const std::size_t word = ascii_letters_end(text, second);
      if (word > second) return word;
    }
    if ((first.kinds & kind::letter) != 0) return same_end(text, second, first.kinds);
    const unsigned letters = kind::letter | (first.kinds & cjk);
    if (next == letters && (first.kinds & (kind::newline | symbol)) == 0) {
      return same_end(text, second, letters);
    }
    if (first.kinds == symbol || (text[begin] == ' ' && next == symbol)) {
      return skip_any(text, same_end(text, second, symbol), "\r\n");
    }
    if ((first.kinds & kind::space) != 0) {
      return newline_space_end(spaces_at<deepseek_matcher>(text, begin, kind::number | cjk));
    }
    if (first.kinds == (symbol | cjk)) return same_end(text, second, first.kinds);
    return gap_end(text, second, first.kinds);
  }

 private:
  static constexpr unsigned no_char = 0x100;

  static unsigned kinds_at(std::string_view text, std::size_t at) noexcept {
    return at < text.size() ? char_at<deepseek_matcher>(text, at).kinds : no_char;
  }

  /// End of the run of characters with exactly these kinds.
  static std::size_t same_end(std::string_view text, std::size_t at, unsigned kinds) noexcept {
    while (at < text.size()) {
      const walked_char c = char_at<deepseek_matcher>(text, at);
      if (c.kinds != kinds) break;
      at += c.size_bytes;
    }
    return at;
  }

  static std::size_t ascii_letters_end(std::string_view text, std::size_t at) noexcept {
    while (at < text.size()) {
      const auto letter = static_cast<unsigned char>(text[at] | 0x20);
      if (letter < 'a' || letter > 'z') break;
      ++at;
    }
    return at;
  }

  /// End of the gap (text between two matches) that begins at `at`. The gap ends before the first
  /// character that an alternative matches, either by itself or as the prefix of letters. It also
  /// ends where the second split cuts.
  static std::size_t gap_end(std::string_view text, std::size_t at, unsigned side) noexcept {
    while (at < text.size()) {
      const walked_char c = char_at<deepseek_matcher>(text, at);
      const std::size_t next = at + c.size_bytes;
      if (c.kinds != side || kinds_at(text, next) == (kind::letter | side)) break;
      at = next;
    }
    return at;
  }
};

/// Like deepseek_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once.
/// Leaves a character undecided if no alternative matches it by itself; the walker (walk.hpp)
/// handles it.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(deepseek_matcher, const window& w) noexcept {
  static_assert(deepseek_matcher::symbol == kind::upper && deepseek_matcher::cjk == kind::lower);
  const mask cjk = w.lower;
  const mask cjk_letter = w.letter & cjk;
  const mask cjk_symbol = w.upper & cjk;
  const mask letter = w.letter & ~cjk;
  const mask symbol = w.upper & ~cjk;
  const mask plain = w.space & ~w.newline;
  const mask undecided = w.valid & ~(w.letter | w.number | w.space | w.upper);

  const mask symbol_starts = symbol & ~(symbol << 1) & ~(w.blank << 1);
  mask starts =
      symbol_starts | (cjk_letter & ~(cjk_letter << 1)) | (cjk_symbol & ~(cjk_symbol << 1));
  // `A[A-Za-z]+` ends before a letter that is not ASCII.
  const mask ascii_letter = letter & w.ascii;
  const mask prefixes = symbol_starts & w.ascii & (ascii_letter >> 1);
  starts |= letter & ~((letter | plain | prefixes) << 1);
  starts |= (ascii_letter + (prefixes << 1)) & ~ascii_letter & letter;
  starts |= number_starts(w.number, 3);

  const mask tail = flooded(w.newline, (symbol << 1) & w.newline);
  starts |= space_starts<Isa>(w, tail, w.valid & ~(w.space | w.number | cjk));

  mask decided = w.valid & below_lowest(undecided);
  if (w.at_end) return {starts, decided, undecided == 0, 0};
  const mask final_run = last_run(w.space & ~tail, w.valid);
  decided &= through_lowest(final_run);
  // Do not resume in a word after an `A` prefix, because only ASCII letters continue that word.
  const bool prefixed = (prefixes & highest(starts)) != 0;
  const mask in_word = prefixed ? 0 : resume_in(w.letter, w, decided);
  return {starts, decided, false, in_word | resume_in_spaces(final_run & decided, w.newline, w)};
}

}  // namespace millrace::tokenizer::detail
