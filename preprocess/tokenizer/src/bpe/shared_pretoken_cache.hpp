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

#include "bpe/huge_array.hpp"
#include "bpe/pretoken_table.hpp"
#include "bpe/word_batch.hpp"

namespace millrace::tokenizer::detail {

/// A cache of words and their ids. The encoders of one engine share it, so that the ids of a word
/// need not be computed twice. Words are never removed. A word can be stored in either of two
/// lines. If both lines are full, the word is not added. Any number of threads may use the cache,
/// and no thread ever waits.
///
/// Holds only computed results, so its contents affect only speed.
template <class Table>
class shared_pretoken_table {
 public:
  using key = typename Table::key;
  using ids = typename Table::ids;

  /// Creates 2^line_bits lines of 64 bytes.
  /// @pre 1 <= line_bits <= 32
  explicit shared_pretoken_table(unsigned line_bits)
      : lines_(std::size_t{1} << line_bits), shift_(64 - line_bits) {}

  /// Adds a word if it is not in the cache and there is room for it.
  void add(const key& word, std::uint64_t hash, const ids& found) noexcept {
    const std::size_t home = hash >> shift_;
    for (const std::size_t at : {home, home ^ 1}) {
      line& place = lines_[at];
      for (std::size_t i = 0; i < Table::ways; ++i) {
        std::uint64_t head = head_of(place.words[i]).load(std::memory_order_acquire);
        if (head == 0 && head_of(place.words[i])
                             .compare_exchange_strong(head, claimed, std::memory_order_acquire)) {
          copy_tail(word, place.words[i]);
          place.found[i] = found.without_place();
          head_of(place.words[i]).store(word.part.back(), std::memory_order_release);
          return;
        }
        if (head == word.part.back() && has_tail(place.words[i], word)) return;
      }
    }
  }

  /// The ids of `word`, valid for the lifetime of this object, or null.
  const ids* find(const key& word, std::uint64_t hash) const noexcept {
    const std::size_t home = hash >> shift_;
    for (const std::size_t at : {home, home ^ 1}) {
      const line& place = lines_[at];
      for (std::size_t i = 0; i < Table::ways; ++i) {
        const std::uint64_t head = head_of(place.words[i]).load(std::memory_order_acquire);
        if (head == 0) return nullptr;  // no word is stored after a free place
        if (head == word.part.back() && has_tail(place.words[i], word)) return &place.found[i];
      }
    }
    return nullptr;
  }

  /// Prefetches the line that find() reads and add() may write.
  void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(&lines_[hash >> shift_]); }

 private:
  using line = typename Table::line;

  // The last part of a key holds the word's size. This part shows whether a place is free (0),
  // being filled by a thread (`claimed`), or used. A thread that reads a real size there may read
  // the whole entry.
  static constexpr std::uint64_t claimed = ~std::uint64_t{0};
  static_assert(key::max_bytes < 0xFF);

  static std::atomic_ref<std::uint64_t> head_of(const key& place) noexcept {
    // Loads do not write, but atomic_ref requires a non-const object until C++26.
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

  huge_array<line> lines_;
  unsigned shift_;
};

/// Returns the `line_bits` of the largest table that takes at most `bytes` bytes. The smallest
/// table takes 128 bytes.
inline unsigned table_line_bits(std::size_t bytes) noexcept {
  return std::clamp(static_cast<unsigned>(std::bit_width(bytes / 64)), 2U, 31U) - 1;
}

/// The pretoken cache that all encoders of one engine share. It has one table for short words and
/// one for long words, as word_batch does.
struct shared_pretoken_cache {
  /// Uses at most `cache_bytes` bytes, or a few hundred bytes if `cache_bytes` is smaller.
  explicit shared_pretoken_cache(std::size_t cache_bytes)
      : shorts(table_line_bits(cache_bytes / 3 * 2)), longs(table_line_bits(cache_bytes / 3)) {}

  shared_pretoken_table<word_batch::short_table> shorts;
  shared_pretoken_table<word_batch::long_table> longs;
};

/// The shared_pretoken_cache of an engine. It is created together with the engine's first encoder,
/// because an engine that only decodes does not need it.
class shared_pretoken_cache_on_demand {
 public:
  explicit shared_pretoken_cache_on_demand(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Returns the cache. The first call creates and fills it. Any thread may call this.
  /// @param encoder_bytes  size of the cache of the encoder that it is for. For little text, both
  /// are
  ///                       small, because new pages can take longer than the text.
  /// @param fill           (shared_pretoken_cache&): adds the initial words
  template <class Fill>
  shared_pretoken_cache& get(std::size_t encoder_bytes, Fill&& fill) const {
    std::call_once(once_, [&] {
      auto made = std::make_unique<shared_pretoken_cache>(
          std::min(most_bytes_, std::max(encoder_bytes, bytes_of_vocabulary)));
      fill(*made);
      tables_ = std::move(made);
    });
    return *tables_;
  }
  shared_pretoken_cache& get(std::size_t encoder_bytes) const {
    return get(encoder_bytes, [](shared_pretoken_cache&) {});
  }

 private:
  static constexpr std::size_t bytes_of_vocabulary = std::size_t{12} << 20;  // 260,000 short words

  std::size_t most_bytes_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<shared_pretoken_cache> tables_;
};

}  // namespace millrace::tokenizer::detail
