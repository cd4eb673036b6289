// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bpe/huge_array.hpp"
#include "bpe/merge_table.hpp"
#include "core/table_io.hpp"

namespace millrace::tokenizer::detail {

/// Maps pairs of tokens to merge results, for vocabularies whose ids rise with rank. The id of a
/// merge result also serves as the rank of the merge. So an entry is one 64-bit integer, and a
/// cache line holds eight entries. Merging starts from single bytes, so pairs of bytes have an
/// additional table that is faster. Read-only once built.
class pair_table {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr std::int32_t max_id = (1 << 20) - 2;

  /// Packs two ids into 40 bits. Never 0.
  static std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) noexcept {
    return std::uint64_t{left + 1} << 20 | right;
  }

  /// @param rules     maximum number of rules that may be added; their ids are at most max_id
  /// @param byte_ids  token of each byte, or -1 if the byte has none
  pair_table(std::size_t rules, const std::array<std::int32_t, 256>& byte_ids)
      : lines_(std::bit_ceil(rules / 5 + 2)),
        shift_(64 - std::countr_zero(lines_.size())),
        byte_ids_(byte_ids),
        byte_of_id_(static_cast<std::size_t>(std::max(0, std::ranges::max(byte_ids)) + 1), no_byte),
        byte_pairs_(std::size_t{256} * 256) {
    std::fill_n(byte_pairs_.data(), byte_pairs_.size(), none);
    for (std::size_t byte = 0; byte < byte_ids.size(); ++byte) {
      if (byte_ids[byte] < 0) continue;
      byte_of_id_[static_cast<std::size_t>(byte_ids[byte])] = static_cast<std::uint16_t>(byte);
    }
  }

  explicit pair_table(table_reader& in) { fields(in, *this); }
  template <class Io, class Self>
  static void fields(Io& io, Self& self) {
    io(self.lines_);
    io(self.shift_);
    io(self.byte_ids_);
    io(self.byte_pairs_);
  }

  /// @pre the table holds fewer rules than its maximum, holds no rule for this pair, and was not
  ///      read from a cache file
  void add(const merge_rule& rule) noexcept {
    const auto result = static_cast<std::uint32_t>(rule.result);
    const std::uint64_t pair =
        pair_of(static_cast<std::uint32_t>(rule.left), static_cast<std::uint32_t>(rule.right));
    for (std::size_t at = home(pair);; at = next(at)) {
      const auto free = std::ranges::find(lines_[at].slots, 0U);
      if (free == lines_[at].slots.end()) continue;  // a free slot exists: at most 5 of 8 are used
      *free = pair << 24 | result;
      break;
    }
    const std::uint16_t left = byte_of(rule.left);
    const std::uint16_t right = byte_of(rule.right);
    if (left != no_byte && right != no_byte) byte_pairs_[std::size_t{left} << 8 | right] = result;
  }

  /// Returns the merge result of the pair, which is also the rank of the merge. Returns `none` if
  /// the pair does not merge. Lower ranks merge first.
  std::uint32_t find(std::uint64_t pair) const noexcept {
    for (std::size_t at = home(pair);; at = next(at)) {
      for (const std::uint64_t slot : lines_[at].slots) {
        if (slot >> 24 == pair) return static_cast<std::uint32_t>(slot) & 0xFFFFFF;
        if (slot == 0) return none;
      }
    }
  }

  /// A cache line of 8 slots, filled from the first slot. A slot holds a pair in its upper 40 bits
  /// and the pair's merge result in its lower 24 bits. A free slot is 0. If a line is full, further
  /// pairs are stored in the next line.
  struct alignas(64) line {
    std::array<std::uint64_t, 8> slots;
  };
  /// The first line to search for a pair, for prefetching and vectorized look-ups.
  const line& line_of(std::uint64_t pair) const noexcept { return lines_[home(pair)]; }

  const std::array<std::int32_t, 256>& byte_ids() const noexcept { return byte_ids_; }
  /// The merge result of each pair of bytes, or `none`. The index of a pair is `left << 8 | right`.
  const std::uint32_t* byte_pairs() const noexcept { return byte_pairs_.data(); }

 private:
  static constexpr std::uint16_t no_byte = 256;

  std::uint16_t byte_of(std::int32_t id) const noexcept {
    const auto index = static_cast<std::size_t>(id);
    return index < byte_of_id_.size() ? byte_of_id_[index] : no_byte;
  }
  std::size_t home(std::uint64_t pair) const noexcept {
    return (pair ^ pair >> 20) * 0x9E3779B97F4A7C15U >> shift_;
  }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (lines_.size() - 1); }

  huge_array<line> lines_;
  int shift_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<std::uint16_t> byte_of_id_;  // for add() only
  huge_array<std::uint32_t> byte_pairs_;
};

}  // namespace millrace::tokenizer::detail
