// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/r50k_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like r50k_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, bool NumbersApart, bool DigitsStage>
[[gnu::always_inline]] inline cuts cuts_of(r50k_group<NumbersApart, DigitsStage>,
                                           const window& w) noexcept {
  const mask other = w.valid & ~(w.letter | w.number | w.space);
  const mask numbers = NumbersApart ? 0 : w.number & (w.number << 1);
  const mask same = (w.letter & (w.letter << 1)) | (other & (other << 1)) | numbers;
  const mask next = NumbersApart ? w.letter | other : w.valid & ~w.space;
  mask starts = w.valid & ~w.space & ~same & ~(w.blank << 1);
  if (NumbersApart) starts |= w.number;
  starts |= w.space & (~(w.space << 1) | (next >> 1));

  const mask two = w.contraction2 & starts;
  const mask three = w.contraction3 & starts;
  starts &= ~((two | three) << 1);
  starts |= (two << 2) | (three << 3);

  if (w.at_end) return {starts, w.valid, true, 0};
  const mask open = last_run(w.space, w.valid) | (w.apostrophe & last_of(w.valid, 2));
  const mask decided = w.valid & through_lowest(open);
  return {starts, decided, false, resume_in(w.letter, w, decided)};
}

}  // namespace millrace::tokenizer::detail
