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

/// Keeps track of extents that are read ahead. An extent consists of whole blocks of a file that
/// one call reads. It contains pieces, which are parts of announced requests. An extent is queued,
/// then read into a slot (a buffer). A gather later copies the pieces from the slot to their
/// destinations. This class makes no system calls, and knows slots only by their index.
///
/// An extent is kept until all its announced pieces were gathered. If nobody gathers it, it becomes
/// `stale` after a number of gathers, and is dropped when its slot is needed.
class ahead_reads {
 public:
  enum class state : std::uint8_t { queued, reading, ready, failed };

  struct key {
    std::int64_t file = 0;
    std::uint64_t begin = 0;
    auto operator<=>(const key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct entry {
    std::uint64_t end = 0;  ///< the extent is bytes [key.begin, end) of the file
    state now = state::queued;
    std::size_t slot = 0;       ///< not set while queued
    std::int64_t expected = 0;  ///< number of pieces announced and not yet gathered
    std::int64_t pinned = 0;    ///< number of pieces that a gather is about to copy
    std::uint64_t since = 0;    ///< number of gathers before the extent was announced
  };
  using map = std::map<key, entry>;
  using place = map::iterator;

  /// @param longest  upper bound on the length of an extent, in bytes
  explicit ahead_reads(std::uint64_t longest) : longest_(longest) {}

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  place none() noexcept { return entries_.end(); }

  /// An extent that contains byte `at` of a file, or `none()`.
  place covering(std::int64_t file, std::uint64_t at) {
    // Extents can overlap: an extent can begin in the last block of the extent before it.
    for (auto p = entries_.upper_bound({file, at}); p != entries_.begin();) {
      --p;
      if (p->first.file != file || p->first.begin + longest_ <= at) break;
      if (at < p->second.end) return p;
    }
    return none();
  }

  /// Divides a range at the borders of extents, and calls a function for each part, in order:
  /// `covered(place, begin, end)` for a part that an extent contains, and `uncovered(begin, end)`
  /// for a part that is in no extent.
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

  /// Queues an extent.
  /// @pre no extent has this key
  /// @param expected  number of pieces announced
  /// @param gathers   number of gathers so far
  void add(const key& k, std::uint64_t end, std::int64_t expected, std::uint64_t gathers) {
    // The queue changes first. If the next line throws, the queue has a key without an entry, and
    // `next_queued` skips this key.
    queue_.push_back(k);
    entries_.insert_or_assign(k, entry{end, state::queued, 0, expected, 0, gathers});
  }
  std::size_t queued() const noexcept { return queue_.size(); }

  /// The first queued extent, or `none()`. The extent stays queued until `start` or `erase` is
  /// called for it.
  place next_queued() {
    while (!queue_.empty()) {
      const auto p = entries_.find(queue_.front());
      if (p != entries_.end() && p->second.now == state::queued) return p;
      queue_.pop_front();
    }
    return none();
  }
  /// Marks an extent as being read. Call this just before the read starts. If the read cannot be
  /// started, call `erase`.
  /// @return false if memory is exhausted; nothing has then changed
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

  /// Returns a stale extent, or `none()`. Among the extents that are being read or are ready,
  /// examines only the one whose read was started first. This extent is stale if it is ready, was
  /// announced at least `patience` gathers ago, and no gather is about to copy from it.
  ///
  /// @param gathers  number of gathers so far
  place stale(std::uint64_t gathers, std::uint64_t patience) {
    for (; !order_.empty(); order_.pop_front()) {
      const auto p = entries_.find(order_.front());
      if (p == entries_.end() || p->second.now != state::ready) {
        if (p != entries_.end() && p->second.now == state::reading) return none();
        continue;  // no longer kept, or its read failed
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
  std::deque<key> order_;  // in the order of the calls of `start`; may contain erased extents
};

}  // namespace millrace::loader
