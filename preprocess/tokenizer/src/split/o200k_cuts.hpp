// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "split/o200k_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

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

/// Finds where words begin inside a run of word characters: where `[U]*[V]+|[U]+[V]*` matches again
/// and again.
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
  if (resume_in(words | w.han, w, decided) == 0) return 0;
  const mask letter = highest(letters | w.han);
  if ((letter & lower) != 0) return letter;
  const bool lower_before = (lower & ~(highest(starts | 1) - 1)) != 0;
  return (letter & upper) != 0 || lower_before ? 0 : letter;
}

/// Like o200k_group::end, but finds the cuts of a window (up to 64 bytes of text) at once. Leaves
/// two kinds of characters undecided, because they can play several roles: marks that do not follow
/// a word, and Han characters that are not letters. The walker (walk.hpp) handles them.
template <class Isa, o200k_rules Rules>
[[gnu::always_inline]] inline cuts cuts_of(o200k_group<Rules>, const window& w) noexcept {
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
  decided &= through_lowest(last_run(w.space & ~tail, w.valid));
  return {starts, decided, false, resume_in_case(w, words, letters, upper, lower, starts, decided)};
}

}  // namespace millrace::tokenizer::detail
