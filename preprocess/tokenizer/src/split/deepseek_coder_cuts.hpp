// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "split/deepseek_coder_group.hpp"
#include "split/window.hpp"

namespace millrace::tokenizer::detail {

/// Like deepseek_coder_group::end, but finds the cuts of a window (up to 64 bytes of text) at once.
template <class Isa>
[[gnu::always_inline]] inline cuts cuts_of(deepseek_coder_group, const window& w) noexcept {
  const mask letter = w.letter;
  const mask punctuation = w.upper;
  const mask east = w.lower;
  const mask alone = w.newline | w.number;
  const mask rest = w.valid & ~(letter | punctuation);
  const mask joined = w.space & ((letter | punctuation) >> 1);
  const mask starts =
      joined | alone | (alone << 1) | (east ^ (east << 1)) |
      (((letter & ~(letter << 1)) | (punctuation & ~(punctuation << 1)) | (rest & ~(rest << 1))) &
       ~(joined << 1));
  if (w.at_end) return {starts & w.valid, w.valid, true, 0};
  return local_cuts(starts, w, w.space);
}

}  // namespace millrace::tokenizer::detail
