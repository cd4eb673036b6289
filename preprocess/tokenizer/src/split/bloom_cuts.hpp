// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/bloom_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like bloom_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(bloom_group, const window& w) noexcept {
  const mask word = w.letter;
  const mask joined = w.blank & (word >> 1);
  const mask starts = joined | (~word & (word << 1)) | (word & ~((word | w.blank) << 1));
  if (w.at_end) return {starts & w.valid, w.valid, true, 0};
  return local_cuts(starts, w, w.blank);
}

}  // namespace millrace::tokenizer::detail
