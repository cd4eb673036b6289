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

/// What was announced: extents of files that are to be read, are being read, or were, until they
/// are gathered. It knows no ring: slots are numbers.
///
/// Each extent is kept for as many gathered pieces as were announced of it; one that nobody comes
/// for is `stale` after some gathers, and goes when its slot is wanted.
class ahead_reads {
 public:
  enum class state : std::uint8_t { queued, reading, ready, failed };

  struct key {
    std::int64_t file = 0;
    std::uint64_t begin = 0;
    auto operator<=>(const key&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  struct entry {
    std::uint64_t end = 0;  ///< bytes from key.begin to here are, or will be, there
    state now = state::queued;
    std::size_t slot = 0;       ///< unless queued
    std::int64_t expected = 0;  ///< pieces that were announced, and not gathered yet
    std::int64_t pinned = 0;    ///< pieces that a gather is about to take
    std::uint64_t since = 0;    ///< gathers that had been, when it was announced
  };
  using map = std::map<key, entry>;
  using place = map::iterator;

  /// @param longest  bytes of an extent, at most
  explicit ahead_reads(std::uint64_t longest) : longest_(longest) {}

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  place none() noexcept { return entries_.end(); }

  /// The extent that has byte `at` of a file, or none().
  place covering(std::int64_t file, std::uint64_t at) {
    // Extents may lie over each other, as one may begin in the last block of the one before.
    for (auto p = entries_.upper_bound({file, at}); p != entries_.begin();) {
      --p;
      if (p->first.file != file || p->first.begin + longest_ <= at) break;
      if (at < p->second.end) return p;
    }
    return none();
  }

  /// Goes through a range: covered(place, begin, end) for each part that an extent has, and
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

  /// Puts an extent into the queue. @pre none begins there
  void add(const key& k, std::uint64_t end, std::int64_t expected, std::uint64_t gathers) {
    queue_.push_back(k);  // first: without its entry a key is skipped, and nothing else is harmed
    entries_.insert_or_assign(k, entry{end, state::queued, 0, expected, 0, gathers});
  }
  std::size_t queued() const noexcept { return queue_.size(); }

  /// The first of the queue, or none(). It stays there until `start` or `erase`.
  place next_queued() {
    while (!queue_.empty()) {
      const auto p = entries_.find(queue_.front());
      if (p != entries_.end() && p->second.now == state::queued) return p;
      queue_.pop_front();
    }
    return none();
  }
  /// Its read is about to be started; if that fails, `erase` it.
  /// @return false, and nothing has changed, if there is no memory for it
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

  /// The one that was started first and is ready, if nobody came for it in so many gathers.
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
  std::deque<key> order_;  // as they were started; of some that are gone, too
};

}  // namespace millrace::loader
