// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "bpe/huge_array.hpp"
#include "bpe/overflow_cache.hpp"
#include "split/intrinsics.hpp"

namespace millrace::tokenizer::detail {

#if defined(__x86_64__)
/// Two rounds of AES, after which each byte depends on all bytes of the key.
[[gnu::target("aes,sse4.1"), gnu::always_inline]] inline __m128i aes_mixed(__m128i key) noexcept {
  const __m128i once = _mm_aesenc_si128(key, key);
  return _mm_aesenc_si128(once, once);
}
template <std::size_t Words>
[[gnu::target("aes,sse4.1")]] inline std::uint64_t aes_hash(
    const std::array<std::uint64_t, Words>& key) noexcept {
  // Not one load of 16 bytes: the key is often just being stored, 8 bytes at a time.
  const auto pair = [&](std::size_t i) {
    return _mm_set_epi64x(static_cast<long long>(key[i + 1]), static_cast<long long>(key[i]));
  };
  __m128i joined = pair(0);
  for (std::size_t i = 2; i < Words; i += 2) joined = _mm_aesenc_si128(joined, pair(i));
  return static_cast<std::uint64_t>(_mm_cvtsi128_si64(aes_mixed(joined)));
}
#endif

/// A short word stored in an array of 64-bit integers: its bytes, zeros as padding, and its size in
/// the last byte. A key whose bytes are all zero stands for no word. In a table, the top bit of the
/// last byte marks a word whose ids must not simply be copied.
///
/// Long runs of spaces and dashes are so common in tables and code that they have short keys, too.
///
/// @tparam Words  number of 64-bit integers: a key holds a word of at most 8 * Words - 1 bytes
template <std::size_t Words>
struct word_key {
  static constexpr std::size_t max_bytes = 8 * Words - 1;

  std::array<std::uint64_t, Words> part{};

  bool operator==(const word_key&) const = default;

  /// @param readable  number of bytes that can be read at `word`, at least `size`; the fast path
  ///                  needs at least 8 * Words readable bytes
  /// @pre size <= max_bytes
  static word_key of(const char* word, std::size_t size, std::size_t readable) noexcept {
    word_key key;
    if (readable >= 8 * Words) {
      std::memcpy(key.part.data(), word, 8 * Words);
      for (std::size_t i = 0; i < Words; ++i) key.part[i] &= forms[size % forms.size()].bytes[i];
    } else {
      std::memcpy(key.part.data(), word, size);
    }
    key.part[Words - 1] |= std::uint64_t{size} << 56;
    return key;
  }

  /// The size in bytes of the word or run.
  std::size_t size() const noexcept { return part[Words - 1] >> 56; }

  /// The key of a run of one byte that is too long for of(). It equals no key of a word.
  /// @param byte  any byte of the run
  /// @pre max_bytes < size <= max_run_bytes
  static word_key of_run(char byte, std::size_t size) noexcept {
    word_key key;
    key.part[0] = static_cast<unsigned char>(byte) * std::uint64_t{0x0101010101010101};
    key.part[Words - 1] = std::uint64_t{size} << 56;
    return key;
  }
  static constexpr std::size_t max_run_bytes = 127;

  word_key marked(bool is_marked) const noexcept {
    word_key key = *this;
    key.part[Words - 1] |= is_marked ? mark : 0;
    return key;
  }
  word_key unmarked() const noexcept {
    word_key key = *this;
    key.part[Words - 1] &= ~mark;
    return key;
  }

  /// A hash of which each bit depends on all bits of the key. It differs between processors: it is
  /// aes_hash() where the processor has instructions for AES, otherwise multiplied_hash().
  std::uint64_t hash() const noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("aes")) return aes_hash(part);
#endif
    return multiplied_hash();
  }
  std::uint64_t multiplied_hash() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < Words; ++i) sum += part[i] * hash_factors[i];
    sum = (sum ^ sum >> 32) * hash_factors[0];  // so that the last byte changes low bits, too
    return sum ^ sum >> 32;
  }

  static constexpr std::uint64_t hash_factors[4] = {0x9E3779B97F4A7C15U, 0xC2B2AE3D27D4EB4FU,
                                                    0xD6E8FEB86659FD93U, 0xA0761D6478BD642FU};

  /// What makes a key of text: (text & bytes) | size is the key of the word there.
  struct alignas(8 * Words) form {
    std::array<std::uint64_t, Words> bytes{};  ///< the bytes that belong to the word
    std::array<std::uint64_t, Words> size{};   ///< the word's size, in the last byte
  };
  /// The form of each size.
  static constexpr std::array<form, 8 * Words> forms = [] {
    std::array<form, 8 * Words> all{};
    for (std::size_t size = 0; size < 8 * Words; ++size) {
      for (std::size_t byte = 0; byte < size; ++byte) {
        all[size].bytes[byte / 8] |= std::uint64_t{0xFF} << 8 * (byte % 8);
      }
      all[size].size[Words - 1] = std::uint64_t{size} << 56;
    }
    return all;
  }();

 private:
  static constexpr std::uint64_t mark = std::uint64_t{1} << 63;
};

/// Stores the ids of one word in a table. Each id is below 2^24.
template <std::size_t Capacity>
class word_ids {
 public:
  static constexpr std::size_t capacity = Capacity;
  static constexpr std::int32_t max_id = (1 << 24) - 1;

  /// @pre ids.size() <= capacity; each id is in 0 .. max_id
  void set(std::span<const std::int32_t> ids) noexcept {
    assert(std::ranges::all_of(ids, [](std::int32_t id) { return id >= 0 && id <= max_id; }));
    std::copy(ids.begin(), ids.end(), ids_.begin());
    set_head(ids.empty() ? 0 : static_cast<std::uint32_t>(ids[0]), ids.size());
  }
  std::size_t count() const noexcept { return ids_[0] >> 24 & 0x3F; }

  /// Marks a word that has more ids than fit here. Its ids are in the overflow cache, at `place` if
  /// that is known.
  void set_elsewhere(const overflow_cache::place& place = {}) noexcept {
    set_head(0, elsewhere);
    ids_[1] = place.begin;
    ids_[2] = place.count;
    ids_[3] = place.generation;
  }
  bool is_elsewhere() const noexcept { return count() == elsewhere; }
  /// @pre is_elsewhere()
  overflow_cache::place place() const noexcept { return {ids_[1], ids_[2], ids_[3]}; }
  /// For another encoder, whose overflow cache has other places.
  word_ids without_place() const noexcept {
    word_ids ids = *this;
    if (is_elsewhere()) ids.set_elsewhere();
    return ids;
  }

  /// Marks ids that apply only if the word is a whole pretoken. In a fragment of a pretoken, the
  /// same bytes merge to other ids.
  void set_whole_only() noexcept { ids_[0] |= whole_only; }
  bool is_whole_only() const noexcept { return (ids_[0] & whole_only) != 0; }

  /// True if set_elsewhere() or set_whole_only() marked the ids. Then the caller must not simply
  /// copy the ids.
  bool is_special() const noexcept { return ids_[0] >= elsewhere << 24; }

  /// Writes `capacity` ids. Only the first count() are valid.
  void copy_to(std::int32_t* out) const noexcept {
    std::array<std::uint32_t, Capacity> ids = ids_;
    ids[0] &= 0x00FFFFFF;
    std::memcpy(out, ids.data(), sizeof ids);
  }

 private:
  static constexpr std::uint32_t elsewhere = 0x3F;
  static constexpr std::uint32_t whole_only = std::uint32_t{1} << 31;

  void set_head(std::uint32_t first, std::size_t count) noexcept {
    ids_[0] = first | static_cast<std::uint32_t>(count) << 24;
  }

  std::array<std::uint32_t, Capacity> ids_{};  // the top byte of ids_[0] holds the count
};

/// A cache of words and their ids. A look-up reads one CPU cache line. The table never grows: if a
/// line is full, a new word replaces an old one.
///
/// Holds only computed results, so its contents affect only speed.
template <std::size_t Words>
class pretoken_table {
 public:
  using key = word_key<Words>;
  using ids = word_ids<2 * Words>;  // the same size in bytes as the key

  static constexpr std::size_t ways = 4 / Words;
  struct alignas(64) line {
    std::array<key, ways> words;
    std::array<ids, ways> found;
  };
  static_assert(sizeof(line) == 64);

  /// Creates 2^line_bits lines of 64 bytes.
  /// @pre 1 <= line_bits <= 32
  explicit pretoken_table(unsigned line_bits)
      : lines_(std::size_t{1} << line_bits), mask_((std::size_t{1} << line_bits) - 1) {}

  const line& line_of(std::uint64_t hash) const noexcept { return lines_[index(hash)]; }

  /// The ids of `word`, or null. `place` must be the line of the word's hash.
  static const ids* find(const line& place, const key& word) noexcept {
    if constexpr (ways == 1) {
      return place.words[0].unmarked() == word ? &place.found[0] : nullptr;
    } else {
      // Compare both entries in all cases, because a branch would be unpredictable.
      const std::uint64_t first = difference(place.words[0], word);
      const std::uint64_t second = difference(place.words[1], word);
      const ids* found = &place.found[first == 0 ? 0 : 1];
      return ((first != 0) & (second != 0)) ? nullptr : found;
    }
  }

  /// Stores the ids of a word. If its line is full, a word of the line is dropped. Marks the word's
  /// key if `found` is special, so that loops that compare keys find only words whose ids they may
  /// copy.
  ///
  /// A word that comes early is usually a common one. So a new word takes the last place of a full
  /// line, and only every eighth drops the first word instead.
  void put(const key& word, std::uint64_t hash, const ids& found) noexcept {
    line& place = lines_[index(hash)];
    std::size_t at = 0;
    while (at < ways && place.words[at] != key{} && place.words[at].unmarked() != word) ++at;
    if (at == ways) {
      at = ways - 1;
      if (++full_puts_ % 8 == 0) {
        std::shift_left(place.words.begin(), place.words.end(), 1);
        std::shift_left(place.found.begin(), place.found.end(), 1);
      }
    }
    place.words[at] = word.marked(found.is_special());
    place.found[at] = found;
  }

  /// For callers that compute the place of a line themselves: line_of(hash) begins
  /// `hash & offset_mask()` bytes after lines().
  const line* lines() const noexcept { return lines_.data(); }
  std::uint64_t offset_mask() const noexcept { return mask_ * sizeof(line); }

 private:
  static std::uint64_t difference(const key& stored, const key& word) noexcept {
    const key plain = stored.unmarked();
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < Words; ++i) all |= plain.part[i] ^ word.part[i];
    return all;
  }
  std::size_t index(std::uint64_t hash) const noexcept { return hash / sizeof(line) & mask_; }

  huge_array<line> lines_;
  std::uint64_t mask_;
  std::uint32_t full_puts_ = 0;  // words put into full lines
};

}  // namespace millrace::tokenizer::detail
