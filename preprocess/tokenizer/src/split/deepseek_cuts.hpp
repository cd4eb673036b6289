// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/deepseek_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like deepseek_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
/// Leaves a character undecided if no alternative matches it by itself; the walker (walk.hpp)
/// handles it.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(deepseek_group, const window& w) noexcept {
  static_assert(deepseek_group::symbol == kind::upper && deepseek_group::cjk == kind::lower);
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
  decided &= through_lowest(last_run(w.space & ~tail, w.valid));
  // Do not resume in a word after an `A` prefix, because only ASCII letters continue that word.
  const bool prefixed = (prefixes & highest(starts)) != 0;
  return {starts, decided, false, prefixed ? 0 : resume_in(w.letter, w, decided)};
}

}  // namespace millrace::tokenizer::detail
