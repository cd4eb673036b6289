// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bpe/huge_array.hpp"
#include "bpe/merge_table.hpp"
#include "core/table_io.hpp"

namespace millrace::tokenizer::detail {

/// Maps pairs of tokens to merge results, for vocabularies whose ids rise with rank. The id of a
/// merge result also serves as the rank of the merge. A look-up nearly always reads one CPU cache
/// line. Merging
/// starts from single bytes, so pairs of bytes have an additional table that is faster. Read-only
/// once built.
///
/// A pair of ids has 40 bits. They are mixed so that no two pairs get the same 40 bits. The upper
/// ones choose the line, and the lower 32 are the pair's tag there. Since there are at least 2^8
/// lines, line and tag together tell exactly which pair it is.
class pair_table {
 public:
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  static constexpr std::int32_t max_id = (1 << 20) - 2;

  /// @param rules     maximum number of rules that may be added; their ids are at most max_id
  /// @param byte_ids  token of each byte, or -1 if the byte has none
  pair_table(std::size_t rules, const std::array<std::int32_t, 256>& byte_ids)
      : lines_(1 + std::bit_ceil(std::max(rules / 5 + 2, fewest_lines))),
        elsewhere_(64),
        shift_(64 - std::countr_zero(lines_.size() - 1)),
        byte_ids_(byte_ids),
        byte_of_id_(static_cast<std::size_t>(std::max(0, std::ranges::max(byte_ids)) + 1), no_byte),
        byte_pairs_(std::size_t{256} * 256) {
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].merges.fill(none);
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
    io(self.elsewhere_);
    io(self.shift_);
    io(self.byte_ids_);
    io(self.byte_pairs_);
  }

  /// @pre the table holds fewer rules than its maximum, holds no rule for this pair, and was not
  ///      read from a cache file
  void add(const merge_rule& rule) {
    const auto result = static_cast<std::uint32_t>(rule.result);
    const std::uint64_t mixed =
        mix(static_cast<std::uint32_t>(rule.left), static_cast<std::uint32_t>(rule.right));
    line& home = lines_[1 + (mixed >> shift_)];
    const auto pairs = std::span(home.merges).first(pairs_per_line);
    if (const auto free = std::ranges::find(pairs, none); free != pairs.end()) {
      home.tags[static_cast<std::size_t>(free - pairs.begin())] = tag_of(mixed);
      *free = result;
    } else {
      home.merges[pairs_per_line] = elsewhere;
      add_elsewhere(mixed | (result + 1));
    }
    const std::uint16_t left = byte_of(rule.left);
    const std::uint16_t right = byte_of(rule.right);
    if (left != no_byte && right != no_byte) byte_pairs_[std::size_t{left} << 8 | right] = result;
  }

  /// Returns the merge result of the pair, which is also the rank of the merge. Returns `none` if
  /// the pair does not merge. Lower ranks merge first.
  /// @pre both are ids from 0 to max_id
  std::uint32_t find(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t mixed = mix(left, right);
    const line& home = lines_[1 + (mixed >> shift_)];
    for (std::size_t i = 0; i < pairs_per_line; ++i) {
      if (home.tags[i] == tag_of(mixed)) return home.merges[i];
    }
    return home.merges[pairs_per_line] == elsewhere ? find_elsewhere(mixed) : none;
  }

  /// A cache line, filled from the front. The merge of a place without a pair is `none`. So the
  /// first place with the tag of a pair gives its merge. If no place has the tag, the last one
  /// does, which never holds a pair: its merge is `none`, or `elsewhere` if there was no room for
  /// all pairs of the line. Then the caller must call find().
  static constexpr std::size_t pairs_per_line = 7;
  struct alignas(64) line {
    std::array<std::uint32_t, 8> tags;
    std::array<std::uint32_t, 8> merges;
  };
  static constexpr std::uint32_t elsewhere = none - 1;

  /// Where a pair is if it merges.
  struct place {
    const line* home;
    std::uint32_t tag;
  };
  /// Stands for a symbol that does not exist, as at the edges of a word.
  static constexpr std::uint32_t no_symbol = 0xFFFFFFFF;
  /// For prefetching and vectorized look-ups. If one of the symbols is no_symbol, the line is one
  /// that never holds a pair.
  place place_of(std::uint32_t left, std::uint32_t right) const noexcept {
    const std::uint64_t mixed = mix(left, right);
    const auto absent = std::int64_t{static_cast<std::int32_t>(left | right) >> 31};
    return {lines_.data() + 1 + (static_cast<std::int64_t>(mixed >> shift_) | absent),
            tag_of(mixed)};
  }

  const std::array<std::int32_t, 256>& byte_ids() const noexcept { return byte_ids_; }
  /// The merge result of each pair of bytes, or `none`. The index of a pair is `left << 8 | right`.
  const std::uint32_t* byte_pairs() const noexcept { return byte_pairs_.data(); }

 private:
  static constexpr std::size_t fewest_lines = 256;
  static constexpr std::uint16_t no_byte = 256;

  // The mixed 40 bits of a pair, above 24 zeros. Each step can be undone, so no pair is lost: the
  // factor is odd.
  static std::uint64_t mix(std::uint32_t left, std::uint32_t right) noexcept {
    return (std::uint64_t{left} << 20 ^ (left ^ right)) * (std::uint64_t{0x9E3779B97F} << 24);
  }
  static std::uint32_t tag_of(std::uint64_t mixed) noexcept {
    return static_cast<std::uint32_t>(mixed >> 24);
  }

  std::uint16_t byte_of(std::int32_t id) const noexcept {
    const auto index = static_cast<std::size_t>(id);
    return index < byte_of_id_.size() ? byte_of_id_[index] : no_byte;
  }

  // `entry` is the mixed bits of a pair, and its result plus 1 in the 24 bits below.
  void add_elsewhere(std::uint64_t entry) {
    if (2 * ++elsewhere_count_ > elsewhere_.size()) {
      std::vector<std::uint64_t> old(2 * elsewhere_.size());
      old.swap(elsewhere_);
      for (const std::uint64_t each : old) {
        if (each != 0) put_elsewhere(each);
      }
    }
    put_elsewhere(entry);
  }
  void put_elsewhere(std::uint64_t entry) noexcept {
    std::size_t at = home_elsewhere(entry);
    while (elsewhere_[at] != 0) at = (at + 1) % elsewhere_.size();
    elsewhere_[at] = entry;
  }
  std::uint32_t find_elsewhere(std::uint64_t mixed) const noexcept {
    for (std::size_t at = home_elsewhere(mixed); elsewhere_[at] != 0;
         at = (at + 1) % elsewhere_.size()) {
      const std::uint64_t entry = elsewhere_[at];
      if (entry >> 24 == mixed >> 24) return static_cast<std::uint32_t>(entry & 0xFFFFFF) - 1;
    }
    return none;
  }
  std::size_t home_elsewhere(std::uint64_t mixed) const noexcept {
    return (mixed >> 24 ^ mixed >> 44) & (elsewhere_.size() - 1);
  }

  huge_array<line> lines_;  // the first never holds a pair
  // The pairs for which their lines have no room, at most about 1 in 20: a power of two of places,
  // at most half of them used. A pair is in its home place or in a later one, before any free place
  // (0).
  std::vector<std::uint64_t> elsewhere_;
  std::size_t elsewhere_count_ = 0;  // for add() only
  int shift_ = 0;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<std::uint16_t> byte_of_id_;  // for add() only
  huge_array<std::uint32_t> byte_pairs_;
};

}  // namespace millrace::tokenizer::detail
