// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "bpe/huge_array.hpp"
#include "bpe/pretoken_table.hpp"
#include "bpe/word_batch.hpp"

namespace millrace::tokenizer::detail {

/// A cache of words and their ids that the encoders of one engine share: what one of them has
/// computed, the others need not compute again. A word that is in the table stays; a word whose two
/// lines are full is not added. Any number of threads, none of which ever waits.
///
/// Holds only what an engine has computed, so its contents affect speed alone.
template <class Table>
class shared_pretoken_table {
 public:
  using key = typename Table::key;
  using ids = typename Table::ids;

  /// 2^line_bits lines of 64 bytes.
  /// @pre 1 <= line_bits <= 32
  explicit shared_pretoken_table(unsigned line_bits)
      : lines_(std::size_t{1} << line_bits),
        used_((std::size_t{1} << line_bits) / 64 + 1),
        shift_(64 - line_bits) {}

  /// Enters a word, if it is not there and there is room.
  void add(const key& word, const ids& found) noexcept {
    const std::size_t home = word.hash() >> shift_;
    for (const std::size_t at : {home, home ^ 1}) {
      line& place = lines_[at];
      for (std::size_t i = 0; i < Table::ways; ++i) {
        std::uint64_t head = head_of(place.words[i]).load(std::memory_order_acquire);
        if (head == 0 && head_of(place.words[i])
                             .compare_exchange_strong(head, claimed, std::memory_order_acquire)) {
          copy_tail(word, place.words[i]);
          place.found[i] = found;
          head_of(place.words[i]).store(word.part.back(), std::memory_order_release);
          mark(home);
          return;
        }
        if (head == word.part.back() && has_tail(place.words[i], word)) return;
      }
    }
  }

  /// The ids of `word`, valid as long as this is, or null.
  const ids* find(const key& word, std::uint64_t hash) const noexcept {
    const std::size_t home = hash >> shift_;
    if (!may_have(home)) return nullptr;
    for (const std::size_t at : {home, home ^ 1}) {
      const line& place = lines_[at];
      for (std::size_t i = 0; i < Table::ways; ++i) {
        const std::uint64_t head = head_of(place.words[i]).load(std::memory_order_acquire);
        if (head == 0) return nullptr;  // nothing is behind a free place
        if (head == word.part.back() && has_tail(place.words[i], word)) return &place.found[i];
      }
    }
    return nullptr;
  }

  /// For a word that will be asked for.
  void prefetch(std::uint64_t hash) const noexcept {
    if (may_have(hash >> shift_)) __builtin_prefetch(&lines_[hash >> shift_]);
  }
  /// For a word that will be added.
  void prefetch_to_add(std::uint64_t hash) const noexcept {
    __builtin_prefetch(&lines_[hash >> shift_], 1);
  }

 private:
  using line = typename Table::line;

  // The last part of a key, which holds its size, says whether a place is free (0), being filled by
  // some thread, or taken: whoever reads a word's own size there may read the rest.
  static constexpr std::uint64_t claimed = ~std::uint64_t{0};
  static_assert(key::max_bytes < 0xFF);

  static std::atomic_ref<std::uint64_t> head_of(const key& place) noexcept {
    // Loads need no write access, which atomic_ref asks for until C++26.
    return std::atomic_ref<std::uint64_t>(const_cast<key&>(place).part.back());
  }
  static bool has_tail(const key& place, const key& word) noexcept {
    std::uint64_t difference = 0;
    for (std::size_t i = 0; i + 1 < word.part.size(); ++i) {
      difference |= place.part[i] ^ word.part[i];
    }
    return difference == 0;
  }
  static void copy_tail(const key& word, key& place) noexcept {
    for (std::size_t i = 0; i + 1 < word.part.size(); ++i) place.part[i] = word.part[i];
  }

  static std::atomic_ref<std::uint64_t> bits_of(const std::uint64_t& word) noexcept {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word));
  }
  void mark(std::size_t home) noexcept {
    if (may_have(home)) return;
    bits_of(used_[home / 64]).fetch_or(std::uint64_t{1} << home % 64, std::memory_order_relaxed);
  }
  bool may_have(std::size_t home) const noexcept {
    return (bits_of(used_[home / 64]).load(std::memory_order_relaxed) >> home % 64 & 1) != 0;
  }

  huge_array<line> lines_;
  // A bit for each line that is the first choice of some word: to see that there is none costs no
  // cache miss.
  std::vector<std::uint64_t> used_;
  unsigned shift_;
};

/// Line bits of a table that takes up to so many bytes, 128 at least.
inline unsigned table_line_bits(std::size_t bytes) noexcept {
  return std::clamp(static_cast<unsigned>(std::bit_width(bytes / 64)), 2U, 31U) - 1;
}

/// The pretoken cache that all encoders of one engine share: a table for each size of words that
/// word_batch looks up.
struct shared_pretoken_cache {
  /// Takes up to `cache_bytes`, a few hundred at least.
  explicit shared_pretoken_cache(std::size_t cache_bytes)
      : shorts(table_line_bits(cache_bytes / 3 * 2)), longs(table_line_bits(cache_bytes / 3)) {}

  shared_pretoken_table<word_batch::short_table> shorts;
  shared_pretoken_table<word_batch::long_table> longs;
};

/// An engine's shared_pretoken_cache, made for its first encoder: a caller that only decodes needs
/// none.
class shared_pretoken_cache_on_demand {
 public:
  explicit shared_pretoken_cache_on_demand(std::size_t cache_bytes) : cache_bytes_(cache_bytes) {}

  /// Any thread.
  /// @param fill  (shared_pretoken_cache&) enters the words that it begins with
  template <class Fill>
  shared_pretoken_cache& get(Fill&& fill) const {
    std::call_once(once_, [&] {
      auto made = std::make_unique<shared_pretoken_cache>(cache_bytes_);
      fill(*made);
      tables_ = std::move(made);
    });
    return *tables_;
  }
  shared_pretoken_cache& get() const {
    return get([](shared_pretoken_cache&) {});
  }

 private:
  std::size_t cache_bytes_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<shared_pretoken_cache> tables_;
};

}  // namespace millrace::tokenizer::detail
