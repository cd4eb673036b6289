// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// The windows that the fast splitters work on, and the mask operations that all patterns share.
///
/// A window covers up to 64 bytes. Its masks have one bit per character; the lowest bit is the
/// first character. Text before a pretoken does not affect later cuts, so a window needs no state
/// from the text before it. A cut near the end of the window stays undecided if it could depend on
/// the text after the window. The next window begins at the last decided cut or, if the last
/// pretoken continues, at a character inside that pretoken from which all later cuts are certain.
namespace millrace::tokenizer::detail {

using mask = std::uint64_t;

struct window {
  mask valid;   ///< the complete characters in the window; can be 0
  bool at_end;  ///< the section ends after fewer than 64 characters, so all runs end in the window

  // One mask per kind of character. A kind that the matcher does not use has the mask 0. Each mask
  // is a subset of `valid`.
  mask letter;
  mask number;
  mask space;
  mask newline;
  mask upper;
  mask lower;
  mask mark;
  mask han;

  mask ascii;
  mask blank;  ///< U+0020
  mask slash;
  mask apostrophe;
  mask contraction2;  ///< apostrophes that begin a contraction of two characters
  mask contraction3;  ///< apostrophes that begin a contraction of three characters
};

/// The cuts found in a window.
struct cuts {
  mask starts;    ///< characters that begin a pretoken; the lowest bit is arbitrary
  mask decided;   ///< characters for which `starts` is final: a prefix of the window
  bool finished;  ///< everything is decided, and the section ends after the window
  mask resume;    ///< a character in the last pretoken where the next window may begin, or 0
};

/// Returns the lowest bit of `bits` and all bits below it. If `bits` is 0, returns all bits.
[[gnu::always_inline]] inline mask through_lowest(mask bits) noexcept {
  return bits ^ (bits - 1);
}

/// Returns all bits below the lowest bit of `bits`. If `bits` is 0, returns all bits.
[[gnu::always_inline]] inline mask below_lowest(mask bits) noexcept {
  return (bits - 1) & ~bits;
}

/// The first character of the run of `bits` that ends at the end of the window, or 0 if no run ends
/// there.
[[gnu::always_inline]] inline mask last_run(mask bits, mask valid) noexcept {
  const mask rest = valid & ~bits;
  const mask before = rest == 0 ? 0 : ~mask{0} >> std::countl_zero(rest);
  const mask run = valid & ~before;
  return run & (0 - run);
}

/// The last `number` characters of the window.
[[gnu::always_inline]] inline mask last_of(mask valid, int number) noexcept {
  return valid & ~(valid >> number);
}

[[gnu::always_inline]] inline mask highest(mask bits) noexcept {
  return bits == 0 ? 0 : mask{1} << (63 - std::countl_zero(bits));
}

/// The last character of the window if it is in `words` and certainly within a word, otherwise 0.
/// Also 0 if any character is undecided or if a contraction may end there.
[[gnu::always_inline]] inline mask resume_in(mask words, const window& w, mask decided) noexcept {
  // Without branches, which would be hard to predict. Decided characters are a prefix.
  return words & last_of(w.valid, 1) & decided & ~((w.apostrophe << 1) | (w.apostrophe << 2));
}

/// If the window ends in white space that has no character of `newline`: the last character but
/// one, where the next window may begin. (A pretoken may begin at the last one.) Otherwise 0.
/// @param run  the first character of the white space that ends the window; 0 if there is none or
///             it is undecided
[[gnu::always_inline]] inline mask resume_in_spaces(mask run, mask newline,
                                                    const window& w) noexcept {
  const mask before_last = (w.valid >> 1) & ~(w.valid >> 2);
  const mask spaces = ~(run - 1);
  return before_last & spaces & (0 - mask{(spaces & newline) == 0});
}

/// Returns, for each run of `bits` that contains a bit of `from`, the part of the run from that bit
/// to its end. A run has at most one bit of `from`.
[[gnu::always_inline]] inline mask flooded(mask bits, mask from) noexcept {
  return ((bits + from) ^ bits) & bits;
}

/// The first character of each run, and every third character after it. Matches of `\p{N}{1,3}`
/// begin there.
[[gnu::always_inline]] inline mask every_third(mask run) noexcept {
  mask third = run & ~(run << 1);
  mask reach = run & (run << 1) & (run << 2) & (run << 3);
  // Two steps without a branch, which would be hard to predict. Few runs need more.
  third |= (third << 3) & reach;
  reach &= reach << 3;
  third |= (third << 6) & reach;
  reach &= reach << 6;
  for (int step = 12; reach != 0; step *= 2) {
    third |= (third << step) & reach;
    reach &= reach << step;
    if (step > 24) break;
  }
  return third;
}

[[gnu::always_inline]] inline mask number_starts(mask number, std::size_t at_most) noexcept {
  return at_most == 1 ? number : every_third(number);
}

/// Filters `from`, a set of first characters of runs of `bits`. Keeps a first character if the
/// character directly after its run is in `wanted`.
template <class Isa>
[[gnu::always_inline]] inline mask followed_by(mask bits, mask from, mask wanted) noexcept {
  const mask ends = (bits + from) & ~bits;
  return Isa::starts_of_runs(bits, from, ends, ends & wanted);
}

/// The cuts for a matcher of local_matchers.hpp, in a window that is followed by more text. All
/// cuts are decided, except the cut before the last character if that character is in `joins`. For
/// these matchers, a window may begin at any character.
[[gnu::always_inline]] inline cuts local_cuts(mask starts, const window& w, mask joins) noexcept {
  const mask decided = w.valid & ~(joins & last_of(w.valid, 1));
  return {starts & w.valid, decided, false, highest(decided)};
}

/// Returns where the matches of `\s*[\r\n]+|\s+(?!\S)|\s+` start, in the white space that is not
/// part of a tail.
/// @param tail  white space that belongs to the match of the punctuation before it
/// @param next  characters that the look-ahead treats as \S
template <class Isa>
[[gnu::always_inline]] inline mask space_starts(const window& w, mask tail, mask next) noexcept {
  const mask plain = w.space & ~w.newline;
  const mask space = w.space & ~tail;
  mask after_newline = ((w.newline & ~tail) << 1) & plain;
  // Few lines have nothing but white space. Then it belongs to the newline after it.
  const bool joins_newline = ((plain + after_newline) & ~plain & w.newline) != 0;
  if (joins_newline) [[unlikely]] {
    after_newline = followed_by<Isa>(plain, after_newline, ~w.space);
  }
  return (space & ~(space << 1)) | (plain & (next >> 1)) | after_newline;
}

}  // namespace millrace::tokenizer::detail
