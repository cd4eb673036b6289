// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "bpe/rare_words.hpp"
#include "bpe/remembered_words.hpp"
#include "bpe/seams.hpp"
#include "bpe/shared_words.hpp"
#include "bpe/word_batch.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// All that one encoder remembers, and the batch that is looked up in it. One thread.
struct encoder_words {
  /// Never takes more than `memory_bytes`, but for a few KiB: half is for short words, an eighth
  /// for longer ones, a quarter for the rest.
  ///
  /// @param shared, seams  outlive this; no seams: words stay whole
  encoder_words(std::size_t memory_bytes, shared_tables& shared, const seam_finder* seams,
                instruction_set set, leading_space space = leading_space::counts)
      : shorts(table_line_bits(memory_bytes / 2), shared.shorts),
        longs(table_line_bits(memory_bytes / 8), shared.longs),
        rare(memory_bytes / 4),
        batch(shorts.front(), longs.front(), seams, set, space) {}

  /// Whether the batch's `i`th word is not in front. False for words that no table has room for.
  bool is_absent(std::size_t i) const noexcept {
    const std::size_t size_bytes = batch.end(i) - batch.begin(i);
    if (size_bytes <= word_batch::short_table::key::max_bytes) {
      return !shorts.has_in_front(batch.short_key(i));
    }
    return size_bytes <= word_batch::long_table::key::max_bytes &&
           !longs.has_in_front(batch.long_key(i));
  }

  /// What is absent of the batch from `first` on, prepared for remembered_words::find. Valid until
  /// the next call.
  const word_batch::absent_words& prefetch_absent(std::size_t first) noexcept {
    batch.find_absent(first, absent);
    for (std::size_t k = 0; k < absent.short_count; ++k) {
      shorts.prefetch(batch.short_key(absent.shorts[k]).hash());
    }
    for (std::size_t k = 0; k < absent.long_count; ++k) {
      longs.prefetch(batch.long_key(absent.longs[k]).hash());
    }
    return absent;
  }

  encoder_words(const encoder_words&) = delete;
  encoder_words& operator=(const encoder_words&) = delete;

  remembered_words<word_batch::short_table> shorts;
  remembered_words<word_batch::long_table> longs;
  rare_words rare;
  word_batch batch;
  word_batch::absent_words absent;
};

}  // namespace millrace::tokenizer::detail
