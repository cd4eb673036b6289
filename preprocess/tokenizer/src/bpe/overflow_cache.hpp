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
      : places_(std::bit_floor(std::max<std::size_t>(cache_bytes, 4096) / 128)),
        store_(std::max<std::size_t>(cache_bytes, 4096) / 8 * 7 / sizeof(std::int32_t)) {}

  /// The ids of `word`, valid until the next put(). If `word` is not cached, returns an empty span
  /// whose data() is null.
  std::span<const std::int32_t> find(std::string_view word) const noexcept {
    if (word.size() > max_word_bytes) return {};
    const std::uint64_t hashed = hash(word);
    const place& p = places_[hashed & (places_.size() - 1)];
    if (p.generation != generation_ || p.hash != static_cast<std::uint32_t>(hashed >> 32) ||
        p.word_bytes != word.size()) {
      return {};
    }
    const std::int32_t* record = &store_[p.begin];
    if (std::memcmp(record, word.data(), word.size()) != 0) return {};
    return {record + words_of(word.size()), p.count};
  }

  void put(std::string_view word, std::span<const std::int32_t> ids) {
    const std::size_t size = words_of(word.size()) + ids.size();
    if (word.size() > max_word_bytes || size > store_.size() / 2) return;
    if (store_.size() - used_ < size) {
      used_ = 0;
      if (++generation_ == 0) {  // wrapped around: old entries must not look current
        std::fill(places_.data(), places_.data() + places_.size(), place{});
        generation_ = 1;
      }
    }
    const std::uint64_t hashed = hash(word);
    places_[hashed & (places_.size() - 1)] = {static_cast<std::uint32_t>(hashed >> 32),
                                              static_cast<std::uint32_t>(used_),
                                              static_cast<std::uint32_t>(ids.size()),
                                              static_cast<std::uint16_t>(word.size()), generation_};
    std::memcpy(&store_[used_], word.data(), word.size());
    std::copy(ids.begin(), ids.end(), &store_[used_] + words_of(word.size()));
    used_ += size;
  }

  std::size_t size_bytes() const noexcept {
    return places_.size() * sizeof(place) + store_.size() * sizeof(std::int32_t);
  }

 private:
  struct place {
    std::uint32_t hash;
    std::uint32_t begin;
    std::uint32_t count;
    std::uint16_t word_bytes;
    std::uint16_t generation;  // 0 means empty
  };

  static std::size_t words_of(std::size_t bytes) noexcept { return (bytes + 3) / 4; }

  static std::uint64_t hash(std::string_view word) noexcept {
    std::uint64_t mixed = word.size();
    for (std::size_t at = 0; at < word.size(); at += 8) {
      std::uint64_t part = 0;
      std::memcpy(&part, word.data() + at, std::min<std::size_t>(8, word.size() - at));
      mixed = (mixed ^ part) * 0x9E3779B97F4A7C15U;
      mixed ^= mixed >> 29;
    }
    return mixed * 0xC2B2AE3D27D4EB4FU ^ mixed >> 32;
  }

  huge_array<place> places_;
  huge_array<std::int32_t> store_;  // records: a word padded to a multiple of 4 bytes, then its ids
  std::size_t used_ = 0;
  std::uint16_t generation_ = 1;
};

}  // namespace millrace::tokenizer::detail
