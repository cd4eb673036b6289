// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "bpe/overflow_cache.hpp"
#include "bpe/seams.hpp"
#include "bpe/shared_pretoken_cache.hpp"
#include "bpe/two_level_table.hpp"
#include "bpe/word_batch.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// The cache of one encoder for pretokens (the words of a text), and the batch of words that are
/// looked up together. For one thread.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): `batch` needs the tables, so it is last
struct pretoken_cache {
  /// Uses at most `cache_bytes` plus a few KiB: two thirds for short words, a twelfth for longer
  /// words, and a sixth for words that do not fit in the tables.
  ///
  /// @param shared, seams  must outlive this object. If `seams` is null, words are not cut at seams
  ///                       (places where a text can be cut without changing its ids).
  pretoken_cache(std::size_t cache_bytes, shared_pretoken_cache& shared, const seam_finder* seams,
                 instruction_set set, leading_space space = leading_space::counts,
                 long_runs runs = long_runs::are_words)
      : shorts(table_line_bits(cache_bytes / 3 * 2), shared.shorts),
        longs(table_line_bits(cache_bytes / 12), shared.longs),
        overflow(cache_bytes / 6),
        batch(shorts.front(), longs.front(), overflow, seams, set, space, runs) {}

  /// True if word `i` of the batch fits in a front table (one of the encoder's own tables) but is
  /// not in it. False for a word that is too long for the tables.
  bool is_absent(std::size_t i) const noexcept {
    if (batch.is_short(i)) return !shorts.has_in_front(batch.short_key(i));
    return batch.end(i) - batch.begin(i) <= word_batch::long_table::key::max_bytes &&
           !longs.has_in_front(batch.long_key(i));
  }

  /// Finds the words of the batch, starting at word `first`, that are not in the front tables.
  /// Prefetches them for two_level_table::find and put. The result is valid until the next call.
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

  pretoken_cache(const pretoken_cache&) = delete;
  pretoken_cache& operator=(const pretoken_cache&) = delete;

  two_level_table<word_batch::short_table> shorts;
  two_level_table<word_batch::long_table> longs;
  overflow_cache overflow;
  word_batch batch;
  word_batch::absent_words absent;
};

}  // namespace millrace::tokenizer::detail
