// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// The windows that the fast splitters work on, and the mask operations that all patterns share.
///
/// A window begins where a pretoken begins and covers up to 64 bytes. Its masks have one bit per
/// character; the lowest bit is the first character. Text before a pretoken does not affect later
/// cuts, so a window needs no state from the left. At the right, cuts that could depend on text
/// after the window stay undecided. The next window begins at the last decided cut.
namespace millrace::tokenizer::detail {

using mask = std::uint64_t;

struct window {
  mask valid;   ///< the complete characters in the window; 0 if there is none
  bool at_end;  ///< the section ends after them, and they are fewer than 64: all runs end inside

  // The kinds of the group, 0 for kinds that it does not use. Each mask is a subset of `valid`.
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
  mask starts;    ///< characters that begin a pretoken; the window's first bit may be set or not
  mask decided;   ///< characters for which `starts` is final: a prefix of the window
  bool finished;  ///< everything is decided, and the section ends after the window
  mask resume;    ///< a character in the last word where the next window may also begin, or 0
};

/// Bits up to and including the lowest of `bits`; all bits if there is none.
[[gnu::always_inline]] inline mask through_lowest(mask bits) noexcept {
  return bits ^ (bits - 1);
}

/// Bits below the lowest of `bits`; all bits if there is none.
[[gnu::always_inline]] inline mask below_lowest(mask bits) noexcept {
  return (bits - 1) & ~bits;
}

/// First character of the run of `bits` that ends at the end of the window, or 0 if there is none.
[[gnu::always_inline]] inline mask last_run(mask bits, mask valid) noexcept {
  const mask rest = valid & ~bits;
  const mask before = rest == 0 ? 0 : ~mask{0} >> std::countl_zero(rest);
  const mask run = valid & ~before;
  return run & (0 - run);
}

/// The last `number` characters.
[[gnu::always_inline]] inline mask last_of(mask valid, int number) noexcept {
  return valid & ~(valid >> number);
}

[[gnu::always_inline]] inline mask highest(mask bits) noexcept {
  return bits == 0 ? 0 : mask{1} << (63 - std::countl_zero(bits));
}

/// The window's last character if it is one of `words` and certainly within a word, else 0. It is 0
/// if any character is undecided or if a contraction may end there.
[[gnu::always_inline]] inline mask resume_in(mask words, const window& w, mask decided) noexcept {
  const bool open = decided == w.valid && (w.apostrophe & last_of(w.valid, 3)) == 0;
  return open ? words & last_of(w.valid, 1) : 0;
}

/// For each run of `bits` that contains a `from` bit: the part of the run from that bit on. A run
/// has at most one `from` bit.
[[gnu::always_inline]] inline mask flooded(mask bits, mask from) noexcept {
  return ((bits + from) ^ bits) & bits;
}

/// Every third character of each run, starting with its first. Matches of `\p{N}{1,3}` begin there.
[[gnu::always_inline]] inline mask every_third(mask run) noexcept {
  mask third = run & ~(run << 1);
  mask reach = run & (run << 1) & (run << 2) & (run << 3);
  for (int step = 3; reach != 0; step *= 2) {
    third |= (third << step) & reach;
    reach &= reach << step;
    if (step > 24) break;
  }
  return third;
}

[[gnu::always_inline]] inline mask number_starts(mask number, std::size_t at_most) noexcept {
  return at_most == 1 ? number : every_third(number);
}

/// The bits of `from` whose run is followed by a `wanted` character or by nothing. `from` holds
/// first characters of runs of `bits`. Each run has one end, and the ends are in the same order as
/// the first characters.
template <class Isa>
[[gnu::always_inline]] inline mask followed_by(mask bits, mask from, mask wanted) noexcept {
  const mask ends = (bits + from) & ~bits;
  return Isa::scatter(Isa::gather(ends & wanted, ends), from);
}

/// The cuts for a group of local_cuts.hpp, in a window with more text after it. All cuts are
/// decided, except a cut before the last character if that character is one of `joins`. For these
/// groups, a window may begin at any character.
[[gnu::always_inline]] inline cuts local_cuts(mask starts, const window& w, mask joins) noexcept {
  const mask decided = w.valid & ~(joins & last_of(w.valid, 1));
  return {starts & w.valid, decided, false, highest(decided)};
}

/// Starts of `\s*[\r\n]+|\s+(?!\S)|\s+` in the white space that is not part of a tail.
/// @param tail  white space that the preceding punctuation has consumed
/// @param next  characters that the look-ahead treats as \S
template <class Isa>
[[gnu::always_inline]] inline mask space_starts(const window& w, mask tail, mask next) noexcept {
  const mask plain = w.space & ~w.newline;
  const mask space = w.space & ~tail;
  const mask after_newline = ((w.newline & ~tail) << 1) & plain;
  mask starts = (space & ~(space << 1)) | (plain & (next >> 1));
  if (after_newline != 0) starts |= followed_by<Isa>(plain, after_newline, ~w.space);
  return starts;
}

}  // namespace millrace::tokenizer::detail
