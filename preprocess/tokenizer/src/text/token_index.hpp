// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// Hash of the `size` bytes at `data`. Each step multiplies and folds eight bytes.
inline std::uint64_t hash_of(const char* data, std::size_t size) noexcept {
  const auto load = [](const char* at, std::size_t bytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, bytes);
    return value;
  };
  const auto mix = [](std::uint64_t h) {
    h *= 0x9E3779B97F4A7C15U;
    return h ^ h >> 32;
  };
  std::uint64_t hash = size * 0xC2B2AE3D27D4EB4FU;
  std::size_t at = 0;
  for (; size - at >= 8; at += 8) hash = mix(hash ^ load(data + at, 8));
  if (at != size) hash = mix(hash ^ load(data + at, size - at));
  return mix(hash);
}
inline std::uint64_t hash_of(std::string_view text) noexcept {
  return hash_of(text.data(), text.size());
}

/// Maps token texts to ids. Does not copy the texts, so they must outlive this object.
///
/// A hash table with 32 bytes per slot, at most half full. A slot holds the first 16 bytes of its
/// text, so a look-up usually reads one cache line. Threads may read it concurrently.
class token_index {
 public:
  static constexpr std::int32_t none = -1;

  token_index() : token_index(0) {}
  /// @param count  maximum number of tokens that may be added
  explicit token_index(std::size_t count)
      : slots_(std::bit_ceil(2 * count + 2)), shift_(64 - std::countr_zero(slots_.size())) {}

  /// @return false if `token` is already present; then nothing changes
  /// @pre id >= 0, and fewer than `count` tokens have been added
  bool add(std::string_view token, std::int32_t id) noexcept {
    const head start = head_of(token);
    slot& s = slots_[place_of(token, start)];
    if (s.id != none) return false;
    s = {start, token.data(), static_cast<std::uint32_t>(token.size()), id};
    return true;
  }

  /// Prefetches the first cache line that find(token) reads.
  void prefetch(std::string_view token) const noexcept {
    __builtin_prefetch(&slots_[hash_of(token) >> shift_]);
  }

  /// The id of `token`, or `none`.
  std::int32_t find(std::string_view token) const noexcept {
    return slots_[place_of(token, head_of(token))].id;
  }

 private:
  // The first 16 bytes of a text, padded with zeros.
  struct head {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    bool operator==(const head&) const = default;
  };
  struct slot {
    head start;
    const char* data = nullptr;
    std::uint32_t size = 0;
    std::int32_t id = none;
  };

  static head head_of(std::string_view token) noexcept {
    head start;
    std::memcpy(&start, token.data(), std::min(token.size(), sizeof start));
    return start;
  }

  // The slot that holds `token`, or the free slot where `token` would be inserted.
  std::size_t place_of(std::string_view token, const head& start) const noexcept {
    const std::uint64_t hash = hash_of(token);
    for (std::size_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      const slot& s = slots_[at];
      if (s.id == none) return at;
      if (s.size != token.size() || !(s.start == start)) continue;
      if (s.size <= sizeof start || std::memcmp(s.data, token.data(), s.size) == 0) return at;
    }
  }

  std::vector<slot> slots_;  // size is a power of two, at least 2
  int shift_;
};

}  // namespace millrace::tokenizer::detail
