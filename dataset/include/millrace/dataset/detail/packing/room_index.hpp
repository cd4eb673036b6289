// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/detail/packing/level_bitmap.hpp>

namespace millrace::dataset {

/// Rows indexed by their remaining room. Finds the fullest row that still has enough room. Rows
/// with equal room form a stack. Not thread-safe.
class room_index {
 public:
  static constexpr std::uint32_t no_row = 0xFFFFFFFF;

  /// @param most  the largest room
  /// @param rows  all row indices are below this
  room_index(std::size_t most, std::size_t rows) : rooms_(most), first_(most + 1), next_(rows) {}

  /// @pre room <= most, and the row is not in the index
  void put(std::size_t room, std::uint32_t row) noexcept {
    assert(room < first_.size() && row < next_.size());
    next_[row] = rooms_.has(room) ? first_[room] : no_row;
    first_[room] = row;
    rooms_.insert(room);
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
    const std::size_t at = rooms_.at_least(room);
    if (at == level_bitmap::none) return {};
    const found taken{first_[at], at};
    first_[at] = next_[taken.row];
    if (first_[at] == no_row) rooms_.erase(at);
    return taken;
  }

  /// Removes all rows. Takes time proportional to the number of rows in the index.
  void clear() noexcept {
    for (found f = take(0); f.row != no_row; f = take(f.room)) {
      first_[f.room] = no_row;
      rooms_.erase(f.room);
    }
  }

 private:
  level_bitmap rooms_;  // amounts of room that any row has
  std::vector<std::uint32_t>
      first_;  // [room], top of the stack; valid only if the room is in rooms_
  std::vector<std::uint32_t> next_;  // [row], next row in the stack
};

}  // namespace millrace::dataset
