// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/token_index.hpp"

namespace millrace::tokenizer::detail {

/// A cache of encoded words and their ids. Uses at most 9 MiB.
///
/// When it is full, it drops all entries, which takes less time than choosing some of them. Holds
/// only computed results, so its contents affect only speed. For one thread.
class word_cache {
 public:
  static constexpr std::size_t max_word_bytes = 255;
  static constexpr std::size_t max_ids = 255;

  /// @param cache_bytes  maximum size of the cache; values below 9 KiB count as 9 KiB
  explicit word_cache(std::size_t cache_bytes)
      : entry_cells_(std::clamp(cache_bytes, least_bytes, most_bytes) / 9 * 8 /
                     sizeof(std::int32_t)),
        slots_(std::bit_floor(std::clamp(cache_bytes, least_bytes, most_bytes) / 9 / sizeof(slot))),
        mask_(slots_.size() - 1) {
    entries_.reserve(entry_cells_);
  }

  /// The ids of `word`, valid until the next put(), or std::nullopt if `word` is not cached.
  std::optional<std::span<const std::int32_t>> find(std::string_view word) const noexcept {
    const std::uint64_t hash = hash_of(word);
    for (std::size_t at = hash & mask_; slots_[at].tag != 0; at = (at + 1) & mask_) {
      if (slots_[at].tag != tag_of(hash)) continue;
      const std::int32_t* entry = entries_.data() + slots_[at].cell;
      const auto size = static_cast<std::size_t>(entry[0] & 0xFF);
      const auto count = static_cast<std::size_t>(entry[0] >> 8);
      if (size == word.size() && std::memcmp(entry + 1 + count, word.data(), size) == 0) {
        return std::span(entry + 1, count);
      }
    }
    return std::nullopt;
  }

  /// Adds `word`, unless the word or its list of ids is too long.
  /// @pre `word` is not cached
  void put(std::string_view word, std::span<const std::int32_t> ids) {
    if (word.size() > max_word_bytes || ids.size() > max_ids) return;
    const std::size_t cells = 1 + ids.size() + (word.size() + 3) / 4;
    if (entries_.size() + cells > entry_cells_ || 2 * (count_ + 1) > slots_.size()) {
      entries_.clear();
      std::ranges::fill(slots_, slot());
      count_ = 0;
    }
    const std::size_t cell = entries_.size();
    entries_.resize(cell + cells);
    std::int32_t* entry = entries_.data() + cell;
    entry[0] = static_cast<std::int32_t>(ids.size() << 8 | word.size());
    std::ranges::copy(ids, entry + 1);
    std::memcpy(entry + 1 + ids.size(), word.data(), word.size());

    const std::uint64_t hash = hash_of(word);
    std::size_t at = hash & mask_;
    while (slots_[at].tag != 0) at = (at + 1) & mask_;
    slots_[at] = {tag_of(hash), static_cast<std::uint32_t>(cell)};
    ++count_;
  }

  std::size_t size_bytes() const noexcept {
    return slots_.size() * sizeof(slot) + entry_cells_ * sizeof(std::int32_t);
  }

 private:
  static constexpr std::size_t least_bytes = std::size_t{9} << 10;
  static constexpr std::size_t most_bytes = std::size_t{9} << 20;

  struct slot {
    std::uint32_t tag = 0;   // 0: empty
    std::uint32_t cell = 0;  // index of the entry: sizes, ids, bytes of the word
  };
  static std::uint32_t tag_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint32_t>(hash >> 32) | 1;
  }

  std::size_t entry_cells_;
  std::vector<slot> slots_;
  std::size_t mask_;
  std::vector<std::int32_t> entries_;
  std::size_t count_ = 0;
};

}  // namespace millrace::tokenizer::detail
