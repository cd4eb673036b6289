// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset {

/// An LRU pool of open sources. It opens each source on first use and keeps a bounded number open.
///
/// Thread-safe. A pointer that `get` returned stays valid even if the pool evicts the source. While
/// one thread opens a source, other threads can get other sources.
template <class T>
class open_pool {
 public:
  using pointer = std::shared_ptr<const T>;
  using open_function = std::function<pointer(std::int64_t source)>;

  /// @param open       opens a source; any thread may call it, but never two threads at once for
  ///                   the same source
  /// @param most_open  maximum number of sources that are kept open
  /// @throws config_error  `most_open` is below 1.
  open_pool(std::int64_t size, open_function open, std::size_t most_open)
      : open_(std::move(open)), entries_(static_cast<std::size_t>(size)), most_open_(most_open) {
    if (most_open < 1) throw config_error("most_open is 0, expected 1 or more open datasets");
  }
  open_pool(const open_pool&) = delete;
  open_pool& operator=(const open_pool&) = delete;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(entries_.size()); }

  /// Returns a source, after opening it if necessary.
  ///
  /// @pre 0 <= source < size()
  /// @throws what `open` throws. The next call tries again.
  pointer get(std::int64_t source) {
    if (pointer opened = find(source)) return opened;
    const std::lock_guard opening(at(source).opening);
    if (pointer opened = find(source)) return opened;  // another thread opened it
    pointer opened = open_(source);
    put(source, opened);
    return opened;
  }

  /// Adds a source that the caller opened, and marks it as most recently used. No effect if the
  /// source is already open.
  void put(std::int64_t source, pointer opened) {
    pointer closed;  // the evicted source is unmapped after the lock is released
    const std::lock_guard lock(mutex_);
    entry& wanted = at(source);
    if (wanted.opened) return;
    if (recent_.size() == most_open_) {
      closed = std::exchange(at(recent_.back()).opened, nullptr);
      recent_.pop_back();
    }
    recent_.push_front(source);
    wanted.place = recent_.begin();
    wanted.opened = std::move(opened);
  }

  /// Number of sources open in the pool. Evicted sources that callers still hold do not count.
  std::size_t open_count() const {
    const std::lock_guard lock(mutex_);
    return recent_.size();
  }

 private:
  struct entry {
    pointer opened;  // protected by mutex_
    std::list<std::int64_t>::iterator
        place;  // place in recent_; valid only while the source is open
    std::mutex opening;
  };

  entry& at(std::int64_t source) noexcept {
    assert(0 <= source && source < size());
    return entries_[static_cast<std::size_t>(source)];
  }
  pointer find(std::int64_t source) {
    const std::lock_guard lock(mutex_);
    const entry& wanted = at(source);
    if (wanted.opened) recent_.splice(recent_.begin(), recent_, wanted.place);
    return wanted.opened;
  }

  open_function open_;
  mutable std::mutex mutex_;
  std::vector<entry> entries_;
  std::list<std::int64_t> recent_;  // open sources, most recently used first
  std::size_t most_open_;
};

}  // namespace millrace::dataset
