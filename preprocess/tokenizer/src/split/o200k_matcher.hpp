// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// The differences between the patterns that this matcher implements.
struct o200k_rules {
  std::size_t numbers_at_most = 3;  ///< 3: `\p{N}{1,3}`, 1: `\p{N}`
  bool contractions = true;         ///< `(?i:'s|'t|...)?` ends a word
  bool slash_in_tail = true;        ///< `[\r\n/]*` follows punctuation, instead of `[\r\n]*`
  bool han_apart = false;  ///< `[\p{Han}]+` is the first alternative; words have no \p{Han}
  bool operator==(const o200k_rules&) const = default;
};

/// The pattern of GPT-4o and its derivatives:
///
///   P?[U]*[V]+C?|P?[U]+[V]*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
///
/// Here P is [^\r\n\p{L}\p{N}], U is any mark or any letter except Ll, V is any mark or any letter
/// except Lu and Lt, and C is a contraction. A character that is in both U and V is called
/// caseless.
template <o200k_rules Rules>
struct o200k_matcher {
  static constexpr o200k_rules rules = Rules;
  static constexpr unsigned used_kinds = word_kinds | kind::newline | kind::upper | kind::lower |
                                         kind::mark | (Rules.han_apart ? kind::han : 0U);
  static constexpr contraction_case contractions =
      Rules.contractions ? contraction_case::either : contraction_case::none;
  static constexpr bool uses_slash = Rules.slash_in_tail;

  static unsigned kinds(std::uint32_t point) noexcept { return flags_of(point) & 0xFF; }

  /// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_matcher::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    const walked_char first = char_at<o200k_matcher>(text, begin);
    const std::size_t second = begin + first.size_bytes;
    if (Rules.han_apart && (first.kinds & kind::han) != 0) {
      return run_end<o200k_matcher>(text, second, kind::han);
    }
    if (const std::size_t word = word_end(text, begin, first)) {
      return Rules.contractions ? word + contraction_size(text, word) : word;
    }
    if ((first.kinds & kind::number) != 0) {
      return run_end<o200k_matcher>(text, second, kind::number, Rules.numbers_at_most - 1);
    }
    const bool others = (first.kinds & kind::space) == 0;
    if (others || (text[begin] == ' ' && second < text.size() &&
                   (char_at<o200k_matcher>(text, second).kinds & word_kinds) == 0)) {
      const std::size_t tail = other_end<o200k_matcher>(text, second);
      return skip_any(text, tail, Rules.slash_in_tail ? "\r\n/" : "\r\n");
    }
    return newline_space_end(spaces_at<o200k_matcher>(text, begin));
  }

 private:
  static bool in_words(unsigned kinds) noexcept {
    if (Rules.han_apart && (kinds & kind::han) != 0) return false;
    return (kinds & (kind::letter | kind::mark)) != 0;
  }

  /// End of the word that begins at `begin`, without its contraction, or 0 if no word begins there.
  /// The order of attempts matters, because a mark can be the prefix of the word or part of it.
  static std::size_t word_end(std::string_view text, std::size_t begin,
                              walked_char first) noexcept {
    const std::size_t second = begin + first.size_bytes;
    const bool prefix = (first.kinds & (kind::letter | kind::number | kind::newline)) == 0 &&
                        second < text.size() &&
                        in_words(char_at<o200k_matcher>(text, second).kinds);
    const bool letter = in_words(first.kinds);
    std::size_t end = 0;
    if (prefix) end = mixed_end(text, second);
    if (end == 0 && letter) end = mixed_end(text, begin);
    if (end == 0 && prefix) end = upper_end(text, second);
    if (end == 0 && letter) end = upper_end(text, begin);
    return end;
  }

  /// End of the match of `[U]*[V]+` at `at`, or 0 if it does not match. After the first lower case
  /// letter, only [V]+ matches. If the word has no lower case letter, [U]* gives characters back
  /// until [V]+ matches the last caseless character.
  static std::size_t mixed_end(std::string_view text, std::size_t at) noexcept {
    bool lower_seen = false;
    std::size_t end = 0;
    while (at < text.size()) {
      const walked_char c = char_at<o200k_matcher>(text, at);
      if (!in_words(c.kinds)) break;
      at += c.size_bytes;
      if ((c.kinds & kind::upper) != 0) {
        if (lower_seen) break;
        continue;
      }
      lower_seen = lower_seen || (c.kinds & kind::lower) != 0;
      end = at;
    }
    return end;
  }

  /// End of the match of `[U]+[V]*` at `at`, or 0 if it does not match. Here `[V]*` matches
  /// nothing, because otherwise mixed_end would have matched.
  static std::size_t upper_end(std::string_view text, std::size_t at) noexcept {
    const std::size_t begin = at;
    while (at < text.size()) {
      const walked_char c = char_at<o200k_matcher>(text, at);
      if (!in_words(c.kinds) || (c.kinds & kind::lower) != 0) break;
      at += c.size_bytes;
    }
    return at > begin ? at : 0;
  }
};

/// The tails that `[\r\n/]*` matches after punctuation. A slash may also be part of the punctuation
/// itself.
struct slash_tail {
  mask tail;   ///< newlines and slashes that belong to a tail, not to punctuation
  mask other;  ///< punctuation outside the tail
};

[[gnu::always_inline]] inline slash_tail slash_tail_of(const window& w, mask other) noexcept {
  const mask either = w.newline | w.slash;
  // In a run of newlines and slashes, the tail begins at the first slash. If punctuation precedes
  // the run, the tail begins at the start of the run. Drop the newlines before the tail.
  const mask free = either & ~(w.slash | (other << 1));
  const mask lead = flooded(free, free & ~(either << 1));
  const mask taken = either & ~lead;
  // Slashes at the beginning of the remaining run are punctuation, not tail.
  const mask head = flooded(w.slash & taken, w.slash & taken & ~(taken << 1));
  return {taken & ~head, other & ~(taken & ~head)};
}

/// Finds where words begin inside a run of word characters, if `[U]*[V]+|[U]+[V]*` is matched
/// repeatedly.
template <class Isa>
[[gnu::always_inline]] inline mask case_starts(mask words, mask upper, mask lower) noexcept {
  const mask caseless = words & ~upper & ~lower;
  const mask after_lower = lower << 1;
  const mask after_both = (caseless + (after_lower & caseless)) & ~caseless;
  mask starts = upper & (after_lower | after_both);
  // Capitals at the end of a run begin a new word if the character before them is caseless.
  const mask last_capitals = upper & (caseless << 1);
  if (last_capitals != 0) starts |= followed_by<Isa>(upper, last_capitals, ~words);
  return starts;
}

/// Joins each contraction to the word before it. A word takes only one contraction.
/// @return the caseless characters directly after a joined contraction. A new word begins there,
///         but case_starts did not know this. So the first of these characters, and all text after
///         it, stay undecided.
[[gnu::always_inline]] inline mask glue_contractions(const window& w, mask words, mask caseless,
                                                     mask& starts) noexcept {
  mask undecided = 0;
  mask glued = 0;  // end of the last joined contraction
  for (mask left = (w.contraction2 | w.contraction3) & (words << 1); left != 0; left &= left - 1) {
    const mask apostrophe = left & (0 - left);
    if ((apostrophe & glued) != 0) continue;
    glued = (apostrophe & w.contraction2) != 0 ? apostrophe << 2 : apostrophe << 3;
    starts &= ~(glued - apostrophe);
    starts |= glued;
    undecided |= glued & caseless;
  }
  return undecided;
}

/// Like resume_in, with one more condition. Resuming at a letter also needs the case state of the
/// word: whether a lower case letter has occurred. The letter itself must imply this state. A lower
/// case letter does. A caseless letter does if no lower case letter precedes it in its word. Marks
/// that follow the letter are read again.
[[gnu::always_inline]] inline mask resume_in_case(const window& w, mask words, mask letters,
                                                  mask upper, mask lower, mask starts,
                                                  mask decided) noexcept {
  const mask letter = highest(letters | w.han);
  mask kept = letter & lower;
  if ((letter & (lower | upper)) == 0) {
    const bool lower_before = (lower & ~(highest(starts | 1) - 1)) != 0;
    kept = lower_before ? 0 : letter;
  }
  return kept & (0 - mask{resume_in(words | w.han, w, decided) != 0});
}

/// Like o200k_matcher::end, but finds the cuts of a window (up to 64 bytes of text) at once. Leaves
/// two kinds of characters undecided, because they can play several roles: marks that do not follow
/// a word, and Han characters that are not letters. The walker (walk.hpp) handles them.
template <class Isa, o200k_rules Rules>
[[gnu::always_inline]] inline cuts cuts_of(o200k_matcher<Rules>, const window& w) noexcept {
  const mask letters = Rules.han_apart ? w.letter & ~w.han : w.letter;
  const mask marks = w.mark & ~(Rules.han_apart ? w.han : 0);
  const mask word_marks = flooded(marks, marks & (letters << 1));
  mask undecided = (w.mark & ~word_marks) | (Rules.han_apart ? w.han & ~w.letter : 0);

  const mask words = letters | word_marks;
  const mask upper = w.upper & words;
  const mask lower = w.lower & words;
  const mask plain = w.space & ~w.newline;
  mask other = w.valid & ~(w.letter | w.number | w.space | w.mark);
  mask tail;
  if (Rules.slash_in_tail && ((w.newline << 1) & w.slash) != 0) {
    const slash_tail found = slash_tail_of(w, other);
    tail = found.tail;
    other = found.other;
  } else {
    tail = flooded(w.newline, (other << 1) & w.newline);
  }

  const mask other_starts = other & ~(other << 1) & ~(w.blank << 1);
  mask starts = other_starts;
  starts |= words & ~((words | plain | other_starts) << 1);  // not after a prefix
  starts |= case_starts<Isa>(words, upper, lower);
  if (Rules.han_apart) starts |= w.han & ~(w.han << 1);
  starts |= number_starts(w.number, Rules.numbers_at_most);
  starts |= space_starts<Isa>(w, tail, w.valid & ~w.space);
  if (Rules.contractions) {
    undecided |= glue_contractions(w, words, words & ~upper & ~lower, starts);
  }

  mask decided = w.valid & below_lowest(undecided);
  if (w.at_end) return {starts, decided, undecided == 0, 0};
  if (Rules.contractions) decided &= below_lowest(w.apostrophe & last_of(w.valid, 2));
  decided &= below_lowest(last_run(upper, w.valid) & ((words & ~upper & ~lower) << 1));
  const mask final_run = last_run(w.space & ~tail, w.valid);
  decided &= through_lowest(final_run);
  return {starts, decided, false,
          resume_in_case(w, words, letters, upper, lower, starts, decided) |
              resume_in_spaces(final_run & decided, w.newline, w)};
}

}  // namespace millrace::tokenizer::detail
