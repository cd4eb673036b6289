// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/cl100k_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like cl100k_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, cl100k_rules Rules>
[[gnu::always_inline]] inline cuts cuts_of(cl100k_group<Rules>, const window& w) noexcept {
  const mask other = w.valid & ~(w.letter | w.number | w.space);
  const mask plain = w.space & ~w.newline;
  const mask other_starts = other & ~(other << 1) & ~(w.blank << 1);
  mask starts = other_starts;
  starts |= w.letter & ~((w.letter | plain | other_starts) << 1);  // not after a prefix
  starts |= number_starts(w.number, Rules.numbers_at_most);

  const mask tail = Rules.newline_tail ? flooded(w.newline, (other << 1) & w.newline) : 0;
  starts |= space_starts<Isa>(w, tail, w.valid & ~w.space);
  const mask final_run = last_run(w.space & ~tail, w.valid);

  if (Rules.contractions) {
    starts |= ((w.contraction2 & starts) << 2) | ((w.contraction3 & starts) << 3);
  }
  if (w.at_end) {
    if (Rules.one_space_at_end) starts &= through_lowest(final_run);
    return {starts, w.valid, true, 0};
  }
  const mask apostrophes = Rules.contractions ? w.apostrophe & last_of(w.valid, 2) : 0;
  const mask decided = w.valid & through_lowest(final_run | apostrophes);
  return {starts, decided, false, resume_in(w.letter, w, decided)};
}

}  // namespace millrace::tokenizer::detail
