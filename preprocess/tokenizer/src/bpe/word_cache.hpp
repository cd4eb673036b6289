// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Remembers the ids of short pretokens; a fixed 8 MiB, whatever it is fed.
///
/// Direct-mapped: a newcomer takes the place of whoever hashes there too. It holds only what the
/// engine has computed, so nothing but speed depends on its contents.
class word_cache {
 public:
  static constexpr std::size_t max_word_bytes = 15;
  static constexpr std::size_t max_ids = 11;

  /// A word of 1 to 15 bytes, padded with zeros, and its length in the last byte; all zero is none.
  struct key {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const key&) const = default;
  };

  /// One cache line.
  struct alignas(64) entry {
    key word;
    std::uint32_t count = 0;
    std::array<std::int32_t, max_ids> ids{};
  };

  word_cache() : entries_(std::size_t{1} << bits) {}

  /// @param readable  bytes that may be read at `word`, at least `size`; 16 make it fast
  /// @pre 1 <= size <= max_word_bytes
  static key make_key(const char* word, std::size_t size, std::size_t readable) noexcept {
    key k;
    if (readable >= 16) {
      std::memcpy(&k, word, 16);
      // Two shifts, as one by 64 is undefined.
      const std::uint64_t low_mask =
          size >= 8 ? ~std::uint64_t{0} : ~(~std::uint64_t{0} << 8 * size);
      const std::uint64_t high_mask = size <= 8 ? 0 : ~(~std::uint64_t{0} << 8 * (size - 8));
      k.low &= low_mask;
      k.high &= high_mask;
    } else {
      std::memcpy(&k, word, size);
    }
    k.high |= std::uint64_t{size} << 56;
    return k;
  }

  /// The place of `word`: it holds `word` or something else.
  entry& at(const key& word) noexcept {
    const std::uint64_t mixed = (word.low ^ word.high * 0x9FB21C651E98DF25U) * 0x9E3779B97F4A7C15U;
    return entries_[mixed >> (64 - bits)];
  }

  /// @pre ids.size() <= max_ids
  static void put(entry& place, const key& word, std::span<const std::int32_t> ids) noexcept {
    place.word = word;
    place.count = static_cast<std::uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), place.ids.begin());
  }

  static constexpr std::size_t size_bytes() noexcept { return sizeof(entry) << bits; }

 private:
  static constexpr unsigned bits = 17;
  static_assert(sizeof(entry) == 64 && sizeof(key) == 16);

  std::vector<entry> entries_;
};

}  // namespace millrace::tokenizer::detail
