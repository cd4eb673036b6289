// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "bpe/huge_array.hpp"

namespace millrace::tokenizer::detail {

/// A cache of words that do not fit in a pretoken_table because they are too long or have too many
/// ids. When it is full, it drops all entries.
///
/// Holds only computed results, so its contents affect only speed.
class overflow_cache {
 public:
  /// Longer words are not cached: they rarely repeat.
  static constexpr std::size_t max_word_bytes = 1024;

  /// @param cache_bytes  maximum size of the cache; values below 4 KiB count as 4 KiB
  explicit overflow_cache(std::size_t cache_bytes)
      : entries_(std::bit_floor(std::max<std::size_t>(cache_bytes, 4096) / 128)),
        store_(std::max<std::size_t>(cache_bytes, 4096) / 8 * 7 / sizeof(std::int32_t)) {}

  /// Where the ids of a word are, until the cache drops them. The default is nowhere.
  struct place {
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
    std::uint32_t generation = 0;
  };

  /// The place of the ids of `word`, which is nowhere if the word is not cached.
  place place_of(std::string_view word) const noexcept {
    if (word.size() > max_word_bytes) return {};
    const std::uint64_t hashed = hash(word);
    const entry& e = entries_[hashed & (entries_.size() - 1)];
    if (e.ids.generation != generation_ || e.tag != tag_of(hashed, word)) return {};
    const std::int32_t* const record = store_.data() + e.ids.begin - words_of(word.size());
    return std::memcmp(record, word.data(), word.size()) == 0 ? e.ids : place{};
  }

  /// The ids at a place, valid until the next put(). If the cache has dropped them, or the place is
  /// nowhere, returns an empty span whose data() is null.
  std::span<const std::int32_t> ids_at(const place& at) const noexcept {
    if (at.generation != generation_) return {};
    return {store_.data() + at.begin, at.count};
  }

  /// The ids of `word`, as ids_at(place_of(word)).
  std::span<const std::int32_t> find(std::string_view word) const noexcept {
    return ids_at(place_of(word));
  }

  /// Returns the place of the ids, which is nowhere if the word is not cached.
  place put(std::string_view word, std::span<const std::int32_t> ids) {
    const std::size_t size = words_of(word.size()) + ids.size();
    if (word.size() > max_word_bytes || size > store_.size() / 2) return {};
    if (store_.size() - used_ < size) {
      used_ = 0;
      ++generation_;  // does not wrap around within 2^32 times the size of the cache
    }
    const std::uint64_t hashed = hash(word);
    const place at = {static_cast<std::uint32_t>(used_ + words_of(word.size())),
                      static_cast<std::uint32_t>(ids.size()), generation_};
    entries_[hashed & (entries_.size() - 1)] = {tag_of(hashed, word), at};
    std::memcpy(store_.data() + used_, word.data(), word.size());
    std::copy(ids.begin(), ids.end(), store_.data() + at.begin);
    used_ += size;
    return at;
  }

  std::size_t size_bytes() const noexcept {
    return entries_.size() * sizeof(entry) + store_.size() * sizeof(std::int32_t);
  }

 private:
  struct entry {
    std::uint32_t tag;  // of the word
    place ids;
  };

  static std::uint32_t tag_of(std::uint64_t hash, std::string_view word) noexcept {
    static_assert(max_word_bytes < 1 << 11);
    return static_cast<std::uint32_t>(hash >> 43 << 11 | word.size());
  }
  static std::size_t words_of(std::size_t bytes) noexcept { return (bytes + 3) / 4; }

  // Two sums, so that one multiplication need not wait for another.
  static std::uint64_t hash(std::string_view word) noexcept {
    const auto load = [&](std::size_t at) {
      std::uint64_t part;
      std::memcpy(&part, word.data() + at, sizeof part);
      return part;
    };
    const auto add = [](std::uint64_t& sum, std::uint64_t part) {
      sum = (sum ^ part) * 0x9E3779B97F4A7C15U;
      sum ^= sum >> 29;
    };
    std::uint64_t even = word.size();
    std::uint64_t odd = 0;
    std::size_t at = 0;
    for (; at + 16 <= word.size(); at += 16) {
      add(even, load(at));
      add(odd, load(at + 8));
    }
    if (at + 8 < word.size()) add(even, load(at));
    if (word.size() >= 8) {
      add(odd, load(word.size() - 8));
    } else {
      std::uint64_t part = 0;
      std::memcpy(&part, word.data(), word.size());
      add(odd, part);
    }
    const std::uint64_t mixed = even ^ std::rotl(odd, 32);
    return mixed * 0xC2B2AE3D27D4EB4FU ^ mixed >> 32;
  }

  huge_array<entry> entries_;
  huge_array<std::int32_t> store_;  // records: a word padded to a multiple of 4 bytes, then its ids
  std::size_t used_ = 0;
  std::uint32_t generation_ = 1;
};

}  // namespace millrace::tokenizer::detail
