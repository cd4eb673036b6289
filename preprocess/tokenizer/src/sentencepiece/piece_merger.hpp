// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::tokenizer::detail {

/// A piece that merging may give.
struct mergeable_piece {
  std::string_view text;
  std::int32_t id = 0;
  float score = 0;
  bool unused = false;  ///< it merges, but is taken apart again afterwards
};

/// What SentencePiece's BPE merges: which two symbols become which, the highest score first.
/// Immutable, shared by threads.
///
/// A symbol is the id of a piece, or, for a character that is no piece, character_base + its code
/// point: it may still be part of one.
class piece_merges {
 public:
  static constexpr std::int32_t character_base = 0x40000000;
  static constexpr std::uint32_t no_rank = 0xFFFFFFFF;

  struct merge {
    std::uint32_t rank = no_rank;  ///< the lower, the earlier; pieces of equal score share one
    std::int32_t result = -1;
  };

  explicit piece_merges(std::span<const mergeable_piece> pieces);

  /// The symbol of one character.
  std::int32_t symbol(std::uint32_t character) const noexcept {
    if (character < ascii_.size()) return ascii_[character];
    const std::uint32_t page = character >> 8;
    if (page >= pages_.size() || pages_[page] < 0) return character_base + as_id(character);
    return characters_[static_cast<std::size_t>(pages_[page]) * 256 + (character & 0xFF)];
  }

  merge find(std::int32_t left, std::int32_t right) const noexcept {
    const std::uint64_t pair = key(left, right);
    for (std::size_t at = home(pair);; at = (at + 1) & (slots_.size() - 1)) {
      const slot& s = slots_[at];
      if (s.pair == pair) return s.value;
      if (s.pair == no_pair) return {};  // met: at most half of the slots are taken
    }
  }

  bool is_unused(std::int32_t symbol) const noexcept {
    return symbol >= 0 && symbol < character_base && unused_[static_cast<std::size_t>(symbol)];
  }
  /// Whether a piece of two characters or more is unused: then what it comes apart to depends on
  /// the whole text.
  bool has_unused() const noexcept { return has_unused_; }

 private:
  static constexpr std::uint64_t no_pair = ~std::uint64_t{0};
  struct slot {
    std::uint64_t pair = no_pair;
    merge value;
  };

  static std::int32_t as_id(std::uint32_t character) noexcept {
    return static_cast<std::int32_t>(character);
  }
  static std::uint64_t key(std::int32_t left, std::int32_t right) noexcept {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  std::size_t home(std::uint64_t pair) const noexcept {
    return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15U >> shift_;
  }
  void add_characters(std::span<const mergeable_piece> pieces);
  void add_merges(std::span<const mergeable_piece> pieces);

  std::vector<std::int32_t> ascii_;
  std::vector<std::int32_t> pages_;       // by code point / 256: place in characters_ / 256, or -1
  std::vector<std::int32_t> characters_;  // symbols
  std::vector<slot> slots_;               // a power of two
  unsigned shift_ = 0;
  std::vector<bool> unused_;  // by id
  bool has_unused_ = false;
};

/// Merges the symbols of one text; owns the scratch memory of that, for one thread.
class piece_merger {
 public:
  /// Longest text: places in it are 31-bit.
  static constexpr std::size_t max_symbols = 0x7FFFFFFF;

  /// @param merges  outlives this
  explicit piece_merger(const piece_merges& merges) : merges_(&merges) {}

  /// A symbol that never merges: a user-defined piece, by its id. (Pairs never have it.)
  static constexpr std::int32_t frozen(std::int32_t id) noexcept { return -1 - id; }

  /// Merges as far as it goes. Time grows as n log n with the number of symbols.
  /// @pre symbols.size() <= max_symbols
  /// @return the number of symbols left, at the front.
  std::size_t merge(std::span<std::int32_t> symbols);

  /// Calls `leaf` with what a symbol that the last merge() left comes apart to: itself, unless it
  /// is an unused piece.
  template <class Leaf>
  void take_apart(std::int32_t symbol, Leaf leaf, int depth = 0) const {
    // SentencePiece stops there too.
    constexpr int max_depth = 100;
    if (!merges_->is_unused(symbol) || depth > max_depth) return leaf(symbol);
    const auto [left, right] = parts_.at(symbol);  // it merged, so its pair was looked up
    take_apart(left, leaf, depth + 1);
    take_apart(right, leaf, depth + 1);
  }

 private:
  std::size_t merge_short(std::span<std::int32_t> symbols) const noexcept;
  std::size_t merge_long(std::span<std::int32_t> symbols);
  void push(std::uint32_t left, std::uint32_t right, std::span<const std::int32_t> symbols);

  const piece_merges* merges_;

  struct links {
    std::uint32_t before;
    std::uint32_t after;
  };
  std::vector<links> links_;
  std::vector<std::uint64_t> open_;  // rank << 32 | place, a heap with the lowest on top
  // Of unused pieces: the last pair that was seen to give each.
  std::unordered_map<std::int32_t, std::pair<std::int32_t, std::int32_t>> parts_;
};

}  // namespace millrace::tokenizer::detail
