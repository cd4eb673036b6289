// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/bert_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like bert_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa, apart Apart>
[[gnu::always_inline]] inline cuts cuts_of(bert_group<Apart>, const window& w) noexcept {
  static_assert(bert_group<Apart>::alone == kind::number);
  const mask body = w.letter | w.number;
  mask starts = (w.number | (w.letter & ~(w.letter << 1))) & ~(w.blank << 1);
  starts |= w.space & (~(w.space << 1) | (w.blank & (body >> 1)));
  if (w.at_end) return {starts, w.valid, true, 0};
  const mask decided = w.valid & through_lowest(last_run(w.space, w.valid));
  return {starts, decided, false, resume_in(w.letter, w, decided)};
}

}  // namespace millrace::tokenizer::detail
