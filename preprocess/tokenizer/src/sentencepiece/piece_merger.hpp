// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bpe/pair_table.hpp"
#include "bpe/short_merge.hpp"
#include "sentencepiece/text_front.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// The merges of SentencePiece's BPE. Maps two adjacent symbols to the symbol that they merge to.
/// The merge with the highest score comes first. Immutable; threads may share it.
///
/// This class numbers its symbols itself: first the pieces of several characters, by descending
/// score, then characters and user-defined pieces. The highest number, `unknown`, stands for every
/// character that occurs in no piece.
class piece_merges {
 public:
  using symbol = std::uint32_t;
  static constexpr symbol none = 0x1FFFFF;
  static constexpr symbol unknown = 0x1FFFFE;

  /// @param pieces  the pieces that text can match
  /// @throws config_error  there are more than 2 million symbols
  explicit piece_merges(const std::vector<text_piece>& pieces);

  symbol of_character(std::uint32_t character) const noexcept {
    if (character < 0x80) return ascii_[character];
    const std::int32_t page = pages_[character >> 8];
    return page < 0 ? unknown
                    : characters_[static_cast<std::size_t>(page) * 256 + (character & 0xFF)];
  }
  /// The symbol of a user-defined piece.
  symbol of_user_defined(std::int32_t id) const { return user_defined_.at(id); }

  /// The symbol that the pair merges to, or `none`.
  symbol find(symbol left, symbol right) const noexcept {
    const std::uint64_t pair = key(left, right);
    const std::uint64_t mixed = mix(pair);
    // Most pairs do not merge. The filter that shows this is small enough to stay in the CPU cache.
    if (!may_merge(mixed)) return none;
    for (std::size_t at = home(mixed);; at = (at + bucket_slots) & (slots_.size() - 1)) {
      // Look at all slots without a branch, because the position of a pair in its bucket is
      // unpredictable.
      symbol found = none;
      for (std::size_t i = 0; i < bucket_slots; ++i) {
        const std::uint64_t slot = slots_[at + i];
        found = slot >> symbol_bits == pair ? static_cast<symbol>(slot & none) : found;
      }
      // A bucket fills from the front. If it is full, further pairs go to the next bucket. At most
      // half of all slots are used, so a bucket with a free slot always follows.
      if (found != none || slots_[at + bucket_slots - 1] == no_slot) return found;
    }
  }
  /// Prefetches the memory that find() reads.
  void prefetch(symbol left, symbol right) const noexcept {
    const std::uint64_t mixed = mix(key(left, right));
    if (may_merge(mixed)) __builtin_prefetch(&slots_[home(mixed)]);
  }
  /// Returns a table of merges for merge_short. In this table, ASCII characters are bytes, and
  /// unknown_in_pairs() stands for `unknown`. The table has only the merges that rank before the
  /// first two pieces of equal score, so each result has its own rank. Returns null if the model is
  /// too large for this form or has unused pieces.
  const pair_table* pairs() const noexcept { return pairs_ ? &*pairs_ : nullptr; }
  symbol unknown_in_pairs() const noexcept { return static_cast<symbol>(ids_.size()); }
  /// True if `symbols` may merge further after all merges of pairs(). With real models, this
  /// happens only for runs of spaces.
  bool merge_late(std::span<const symbol> symbols) const noexcept {
    bool left_is_late = false;
    for (const symbol s : symbols) {
      const late_sides sides = s < late_.size() ? late_[s] : late_sides{};
      if (left_is_late && sides.right) return true;
      left_is_late = sides.left;
    }
    return false;
  }

  /// True if the pieces with two adjacent spaces are runs of spaces, and all other merges come
  /// before theirs. So the spaces before the last space of a run encode like a text of their own,
  /// unless that last space remains a symbol of its own.
  bool spaces_merge_last() const noexcept { return spaces_merge_last_; }

  static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
  /// The rank of a merge. Lower ranks merge first. Pieces of equal score share a rank.
  /// @pre `merged` was returned by find()
  std::uint32_t rank(symbol merged) const noexcept {
    return merged == none ? no_rank : ranks_[merged];
  }

  /// The id of the symbol's piece, or -1 for a character that is not a piece.
  std::int32_t id(symbol s) const noexcept { return s == unknown ? -1 : ids_[s]; }
  /// @pre s is not `unknown`
  std::size_t size_bytes(symbol s) const noexcept { return sizes_[s]; }

  bool is_unused(symbol s) const noexcept { return s < unused_.size() && unused_[s]; }
  /// True if any piece of two or more characters is unused. How such a piece is split again depends
  /// on the whole text.
  bool has_unused() const noexcept { return has_unused_; }

 private:
  static constexpr unsigned symbol_bits = 21;
  static constexpr std::size_t bucket_slots = 4;
  // An empty slot. A used slot holds the left symbol, the right symbol and the result; its left
  // symbol is never `none`, so it differs from an empty slot.
  static constexpr std::uint64_t no_slot = ~std::uint64_t{0};

  static std::uint64_t key(symbol left, symbol right) noexcept {
    return std::uint64_t{left} << symbol_bits | right;
  }
  static std::uint64_t mix(std::uint64_t pair) noexcept { return pair * 0x9E3779B97F4A7C15U; }
  std::size_t home(std::uint64_t mixed) const noexcept { return (mixed >> shift_) * bucket_slots; }
  bool may_merge(std::uint64_t mixed) const noexcept {
    const std::uint64_t bit = mixed >> filter_shift_;
    return (filter_[bit / 64] >> (bit % 64) & 1) != 0;
  }

  symbol add(std::int32_t id, std::size_t size_bytes);
  void add_merging(std::vector<const text_piece*> pieces);
  void add_character(std::uint32_t character, std::int32_t id, std::size_t size_bytes);
  void add_pairs(std::span<const std::uint64_t> rules, symbol first_tied);
  // The first symbol that shares its rank; all that follow come after the merges of pairs_.
  symbol first_tied() const noexcept;
  // A rule is the key of a pair, with the symbol that the pair merges to in the low bits.
  std::vector<std::uint64_t> rules_of(const std::vector<const text_piece*>& merging) const;
  void add_rules(std::span<const std::uint64_t> rules);

  std::array<symbol, 128> ascii_{};
  std::vector<std::int32_t> pages_;  // by code point / 256: index in characters_ / 256, or -1
  std::vector<symbol> characters_;
  std::unordered_map<std::int32_t, symbol> user_defined_;  // by id
  std::optional<pair_table> pairs_;
  // The sides on which a symbol is in a pair that pairs_ lacks.
  struct late_sides {
    bool left = false;
    bool right = false;
  };
  std::vector<late_sides> late_;  // by symbol
  bool spaces_merge_last_ = false;
  std::vector<std::uint64_t> slots_;  // in buckets; the size is a power of two
  unsigned shift_ = 0;
  std::vector<std::uint64_t> filter_;  // a bit per pair in slots_; few false positives
  unsigned filter_shift_ = 0;
  std::vector<std::int32_t> ids_;  // by symbol, like the next three arrays
  std::vector<std::uint16_t> sizes_;
  std::vector<std::uint32_t> ranks_;  // only for symbols that merges produce
  std::vector<bool> unused_;          // only for symbols that merges produce
  bool has_unused_ = false;
};

/// Merges the symbols of one text. Owns scratch memory; for one thread.
class piece_merger {
 public:
  using symbol = piece_merges::symbol;
  /// Maximum size of a text, in symbols. Indices are 31-bit numbers.
  static constexpr std::size_t max_symbols = 0x7FFFFFFF;

  /// @param merges  must outlive this object
  explicit piece_merger(const piece_merges& merges, instruction_set set = best_instruction_set())
      : merges_(&merges), set_(set) {}

  /// Merges until no merge applies. Time is linear in the number n of symbols, or n log n if the
  /// model has unused pieces.
  /// @pre symbols.size() <= max_symbols
  /// @return the number of remaining symbols, which are at the front.
  std::size_t merge(std::span<symbol> symbols);

  /// True if merge_together() supports this model.
  bool merges_together() const noexcept { return merges_->pairs() != nullptr; }
  /// Prepares a text without user-defined pieces for merge_together().
  /// @return false if the text must be merged with merge()
  /// @pre merges_together(), text is not empty
  bool start(std::string_view text, short_word& word) const noexcept;
  /// Merges texts that start() prepared. Afterwards, the first word.count elements of each
  /// word.symbols are the symbols that merge() would leave.
  /// @pre words.size() <= short_word::most_at_once
  void merge_together(std::span<short_word> words) const noexcept;

  /// If `s`, a result of the last merge(), is an unused piece, splits it and calls `leaf` for each
  /// resulting symbol. Otherwise, calls `leaf` for `s` itself.
  template <class Leaf>
  void take_apart(symbol s, Leaf leaf, int depth = 0) const {
    // SentencePiece has the same limit.
    constexpr int max_depth = 100;
    if (!merges_->is_unused(s) || depth > max_depth) return leaf(s);
    const auto [left, right] = parts_.at(s);  // `s` is a merge result, so its pair was looked up
    take_apart(left, leaf, depth + 1);
    take_apart(right, leaf, depth + 1);
  }

 private:
  void start_symbols(std::span<const symbol> symbols, short_word& word) const noexcept;
  std::size_t merge_few(std::span<symbol> symbols) const noexcept;
  std::size_t merge_in_parts(std::span<symbol> symbols);
  void find_part(std::span<const symbol> symbols, std::size_t begin, std::size_t end);
  bool follows(std::span<const symbol> symbols, std::size_t left, std::size_t right,
               std::size_t end);
  std::size_t merge_long(std::span<symbol> symbols);
  void merge_in_place(std::span<symbol> symbols);
  void push(std::uint32_t left, std::uint32_t right, std::span<const symbol> symbols);

  const piece_merges* merges_;
  instruction_set set_;

  // A merge result, and the index of the first symbol that was merged into it.
  struct placed_symbol {
    symbol merged;
    std::uint32_t begin;
  };
  static constexpr std::size_t part_symbols = 512;
  std::vector<symbol> scratch_;
  std::vector<placed_symbol> part_;  // result of find_part
  std::vector<placed_symbol> done_;  // result of merge_in_parts so far

  struct links {
    std::uint32_t before;
    std::uint32_t after;
  };
  std::vector<links> links_;
  std::vector<std::uint64_t> open_;  // a min-heap of rank << 32 | index of the left symbol
  // For each unused piece: the last pair that was looked up and merges to it.
  std::unordered_map<symbol, std::pair<symbol, symbol>> parts_;
};

}  // namespace millrace::tokenizer::detail
