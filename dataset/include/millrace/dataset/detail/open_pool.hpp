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

/// What is open of many numbered sources: each is opened when it is touched, and a bounded number
/// stay open. The one that was asked for longest ago is closed first.
///
/// Any number of threads. Whoever was given something keeps it for as long as the pointer lives,
/// even if the pool let go of it. One thread opens a source while others go on with theirs.
template <class T>
class open_pool {
 public:
  using pointer = std::shared_ptr<const T>;
  using open_function = std::function<pointer(std::int64_t source)>;

  /// @param open       opens a source; called by any thread, by one at a time for each source
  /// @param most_open  kept open
  /// @throws config_error  `most_open` is below 1.
  open_pool(std::int64_t size, open_function open, std::size_t most_open)
      : open_(std::move(open)), entries_(static_cast<std::size_t>(size)), most_open_(most_open) {
    if (most_open < 1) throw config_error("most_open is 0, expected 1 or more open datasets");
  }
  open_pool(const open_pool&) = delete;
  open_pool& operator=(const open_pool&) = delete;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(entries_.size()); }

  /// A source, opened if it is not.
  ///
  /// @pre 0 <= source < size()
  /// @throws what `open` throws. Asked again, it is opened again.
  pointer get(std::int64_t source) {
    if (pointer opened = find(source)) return opened;
    const std::lock_guard opening(at(source).opening);
    if (pointer opened = find(source)) return opened;  // another thread was as quick
    pointer opened = open_(source);
    put(source, opened);
    return opened;
  }

  /// Keeps what was opened elsewhere, as if it had been asked for; nothing if it is open already.
  void put(std::int64_t source, pointer opened) {
    pointer closed;  // what the pool lets go of is unmapped after the lock
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

  /// How many are open now, those left out that only callers hold.
  std::size_t open_count() const {
    const std::lock_guard lock(mutex_);
    return recent_.size();
  }

 private:
  struct entry {
    pointer opened;                           // under mutex_
    std::list<std::int64_t>::iterator place;  // in recent_, if it is open
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
  std::list<std::int64_t> recent_;  // sources that are open, the one asked for last in front
  std::size_t most_open_;
};

}  // namespace millrace::dataset
