// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::dataset {

/// Rows indexed by their remaining room. Finds the fullest row that still has enough room.
///
/// A hierarchical bitmap. The lowest level has one bit per amount of room; the bit is set if any
/// row has exactly that room. Each higher level has one bit per 64 bits of the level below; the bit
/// is set if any of those 64 bits is set. The top level is a single word. A lookup takes a few
/// steps up and down. Rows with equal room form a stack. Not thread-safe.
class room_index {
 public:
  static constexpr std::uint32_t no_row = 0xFFFFFFFF;

  /// @param most  the largest room
  /// @param rows  all row indices are below this
  room_index(std::size_t most, std::size_t rows) : first_(most + 1), next_(rows) {
    std::size_t bits = most + 1;
    do {
      bits = (bits + 63) / 64;
      levels_.emplace_back(bits);
    } while (bits > 1);
  }

  /// @pre room <= most, and the row is not in the index
  void put(std::size_t room, std::uint32_t row) noexcept {
    assert(room < first_.size() && row < next_.size());
    next_[row] = has(room) ? first_[room] : no_row;
    first_[room] = row;
    for (std::size_t level = 0, at = room; level < levels_.size(); ++level, at >>= 6) {
      levels_[level][at >> 6] |= std::uint64_t{1} << (at & 63);
    }
  }

  struct found {
    std::uint32_t row = no_row;
    std::size_t room = 0;
  };

  /// Removes and returns the row with the smallest room that is at least `room`. If several rows
  /// have that room, takes the one that was added last. If no row has enough room, returns no_row.
  ///
  /// @pre room <= most
  found take(std::size_t room) noexcept {
    std::size_t level = 0;
    std::size_t at = room;
    for (;; ++level, at = (at >> 6) + 1) {
      if (level == levels_.size() || at >> 6 >= levels_[level].size()) return {};
      const std::uint64_t word = levels_[level][at >> 6] >> (at & 63);
      if (word == 0) continue;
      at += static_cast<std::size_t>(std::countr_zero(word));
      break;
    }
    while (level-- > 0) {
      at = at << 6 | static_cast<std::size_t>(std::countr_zero(levels_[level][at]));
    }
    const found taken{first_[at], at};
    first_[at] = next_[taken.row];
    if (first_[at] == no_row) drop(at);
    return taken;
  }

  /// Removes all rows. Takes time proportional to the number of rows in the index.
  void clear() noexcept {
    for (found f = take(0); f.row != no_row; f = take(f.room)) {
      first_[f.room] = no_row;
      drop(f.room);
    }
  }

 private:
  bool has(std::size_t room) const noexcept {
    return (levels_[0][room >> 6] >> (room & 63) & 1) != 0;
  }

  void drop(std::size_t at) noexcept {
    for (auto& level : levels_) {
      std::uint64_t& word = level[at >> 6];
      word &= ~(std::uint64_t{1} << (at & 63));
      if (word != 0) return;
      at >>= 6;
    }
  }

  std::vector<std::vector<std::uint64_t>> levels_;
  std::vector<std::uint32_t> first_;  // [room], top of the stack; valid only if its bit is set
  std::vector<std::uint32_t> next_;   // [row], next row in the stack
};

}  // namespace millrace::dataset
