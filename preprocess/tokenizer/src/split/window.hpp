// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

/// The windows that the fast splitters work on, and what the algebra of all patterns shares.
///
/// A window begins where a pretoken does and holds up to 64 bytes from there. Its masks have one
/// bit a character, the first character's lowest. Since nothing before a pretoken's begin bears on
/// the cuts behind it, no state comes in from the left; at the right, cuts that text behind the
/// window could move are not decided. The next window begins at the last cut that is.
namespace millrace::tokenizer::detail {

using mask = std::uint64_t;

struct window {
  mask valid;   ///< the characters that there are; 0 if not even one is complete
  bool at_end;  ///< the section ends behind them, and they are fewer than 64: runs end inside

  // What the kinds of a group say, as far as it uses them, else 0. They keep to `valid`.
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
  mask contraction3;  ///< and of three
};

/// What the algebra makes of a window.
struct cuts {
  mask starts;    ///< characters at which a pretoken begins, the window's first among them or not
  mask decided;   ///< those for which that is known: all from the first up to some character
  bool finished;  ///< everything is decided, and the section ends behind the window
  mask resume;    ///< where in the last word the next window may begin as well, or 0
};

/// Bits up to and including the lowest of `bits`; all bits if there is none.
[[gnu::always_inline]] inline mask through_lowest(mask bits) noexcept {
  return bits ^ (bits - 1);
}

/// Bits below the lowest of `bits`; all bits if there is none.
[[gnu::always_inline]] inline mask below_lowest(mask bits) noexcept {
  return (bits - 1) & ~bits;
}

/// First character of the run of `bits` that the window ends with, or 0.
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

/// The window's last character, if it is one of `words` and certainly within a word: not if
/// anything is undecided, nor if a contraction may have ended there.
[[gnu::always_inline]] inline mask resume_in(mask words, const window& w, mask decided) noexcept {
  const bool open = decided == w.valid && (w.apostrophe & last_of(w.valid, 3)) == 0;
  return open ? words & last_of(w.valid, 1) : 0;
}

/// What of the runs of `bits` is at or behind a bit of `from`, one at most for each run.
[[gnu::always_inline]] inline mask flooded(mask bits, mask from) noexcept {
  return ((bits + from) ^ bits) & bits;
}

/// Every third of each run, from its first: where `\p{N}{1,3}` begins.
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

/// Those of `from`, which are first characters of runs of `bits`, whose run is followed by one of
/// `wanted` or by nothing. Runs and their ends are as many and in the same order.
template <class Isa>
[[gnu::always_inline]] inline mask followed_by(mask bits, mask from, mask wanted) noexcept {
  const mask ends = (bits + from) & ~bits;
  return Isa::scatter(Isa::gather(ends & wanted, ends), from);
}

/// The cuts of a group of local_cuts.hpp, in a window that more text follows: all are decided but
/// whether one is before a last character that `joins`. A window may begin at any character.
[[gnu::always_inline]] inline cuts local_cuts(mask starts, const window& w, mask joins) noexcept {
  const mask decided = w.valid & ~(joins & last_of(w.valid, 1));
  return {starts & w.valid, decided, false, highest(decided)};
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`, where `space` is the white space that no tail has taken.
/// @param next  what the look-ahead takes for \S
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
