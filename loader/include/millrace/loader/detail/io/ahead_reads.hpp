// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

/// Keeps track of announced extents (whole blocks of a file that one call reads). Each is queued,
/// being read, or read, until it is gathered (copied to its destination). The class does not use
/// the io_uring ring; it treats slots as plain indices.
///
/// An extent is kept until as many of its pieces (parts of requests) were gathered as were
/// announced. An extent that nobody gathers becomes `stale` after a number of gathers, and is
/// dropped when its slot is needed.
class ahead_reads {
 public:
  enum class state : std::uint8_t { queued, reading, ready, failed };

  struct key {
    std::int64_t file = 0;
    std::uint64_t begin = 0;
    auto operator<=>(const key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct entry {
    std::uint64_t end = 0;  ///< bytes from key.begin to here are present, or will be
    state now = state::queued;
    std::size_t slot = 0;       ///< not set while queued
    std::int64_t expected = 0;  ///< pieces announced and not yet gathered
    std::int64_t pinned = 0;    ///< pieces that a gather is about to take
    std::uint64_t since = 0;    ///< number of gathers before it was announced
  };
  using map = std::map<key, entry>;
  using place = map::iterator;

  /// @param longest  upper bound on the length of an extent, in bytes
  explicit ahead_reads(std::uint64_t longest) : longest_(longest) {}

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  place none() noexcept { return entries_.end(); }

  /// The extent that contains byte `at` of a file, or none().
  place covering(std::int64_t file, std::uint64_t at) {
    // Extents can overlap: one can begin in the last block of its predecessor.
    for (auto p = entries_.upper_bound({file, at}); p != entries_.begin();) {
      --p;
      if (p->first.file != file || p->first.begin + longest_ <= at) break;
      if (at < p->second.end) return p;
    }
    return none();
  }

  /// Walks a range: calls covered(place, begin, end) for each part that an extent contains, and
  /// uncovered(begin, end) for the rest.
  template <class Covered, class Uncovered>
  void walk(const file_range& range, const Covered& covered, const Uncovered& uncovered) {
    const std::uint64_t end = range.offset + range.bytes;
    for (std::uint64_t at = range.offset; at < end;) {
      std::uint64_t stop = end;
      if (const auto p = covering(range.file, at); p != none()) {
        stop = std::min(end, p->second.end);
        covered(p, at, stop);
      } else {
        const auto next = entries_.upper_bound({range.file, at});
        if (next != entries_.end() && next->first.file == range.file) {
          stop = std::min(end, next->first.begin);
        }
        uncovered(at, stop);
      }
      at = stop;
    }
  }

  /// Queues an extent. @pre no extent begins at this key
  void add(const key& k, std::uint64_t end, std::int64_t expected, std::uint64_t gathers) {
    queue_.push_back(k);  // first: a key without an entry is skipped, so a later throw is harmless
    entries_.insert_or_assign(k, entry{end, state::queued, 0, expected, 0, gathers});
  }
  std::size_t queued() const noexcept { return queue_.size(); }

  /// The first queued extent, or none(). It stays queued until `start` or `erase`.
  place next_queued() {
    while (!queue_.empty()) {
      const auto p = entries_.find(queue_.front());
      if (p != entries_.end() && p->second.now == state::queued) return p;
      queue_.pop_front();
    }
    return none();
  }
  /// Marks an extent as being read, just before its read starts. If starting fails, `erase` it.
  /// @return false, with nothing changed, if memory is exhausted
  bool start(place p, std::size_t slot) noexcept {
    try {
      order_.push_back(p->first);
    } catch (const std::bad_alloc&) {
      return false;
    }
    p->second.now = state::reading;
    p->second.slot = slot;
    return true;
  }

  void erase(place p) { entries_.erase(p); }

  /// The extent whose read was started first, if it is ready and was not gathered within `patience`
  /// gathers; else none().
  place stale(std::uint64_t gathers, std::uint64_t patience) {
    for (; !order_.empty(); order_.pop_front()) {
      const auto p = entries_.find(order_.front());
      if (p == entries_.end() || p->second.now != state::ready) {
        if (p != entries_.end() && p->second.now == state::reading) return none();
        continue;  // gathered long ago
      }
      const bool old = p->second.since + patience <= gathers && p->second.pinned == 0;
      return old ? p : none();
    }
    return none();
  }

  void clear() {
    entries_.clear();
    queue_.clear();
    order_.clear();
  }

 private:
  std::uint64_t longest_;
  map entries_;
  std::deque<key> queue_;
  std::deque<key> order_;  // in the order of `start`; may contain erased extents
};

}  // namespace millrace::loader
