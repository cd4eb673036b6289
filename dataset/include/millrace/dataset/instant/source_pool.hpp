// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// The indices of many datasets, opened when they are touched, of which a bounded number stay open:
/// the one that was asked for longest ago is closed first.
///
/// Any number of threads. Whoever was given an index keeps it for as long as the pointer lives,
/// even if the pool let go of it. One thread opens a dataset while others go on with theirs.
class source_pool {
 public:
  using source_pointer = std::shared_ptr<const document_search>;

  /// @param prefixes  paths without `.bin` and `.idx`
  /// @param most_open  indices kept open
  /// @throws config_error  `most_open` is below 1.
  explicit source_pool(std::vector<std::filesystem::path> prefixes, std::size_t most_open = 512);
  source_pool(const source_pool&) = delete;
  source_pool& operator=(const source_pool&) = delete;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(entries_.size()); }
  const std::filesystem::path& prefix(std::int64_t source) const noexcept {
    return at(source).prefix;
  }

  /// The index of a source, opened if it is not.
  ///
  /// @pre 0 <= source < size()
  /// @throws io_error, format_error  as index_columns. Asked again, it is opened again.
  source_pointer get(std::int64_t source);

  /// How many are open now, those left out that only callers hold.
  std::size_t open_count() const;

 private:
  struct entry {
    std::filesystem::path prefix;
    source_pointer source;                    // under mutex_
    std::list<std::int64_t>::iterator place;  // in recent_, if there is a source
    std::unique_ptr<std::mutex> opening = std::make_unique<std::mutex>();
  };

  const entry& at(std::int64_t source) const noexcept {
    assert(0 <= source && source < size());
    return entries_[static_cast<std::size_t>(source)];
  }
  source_pointer find(std::int64_t source);

  mutable std::mutex mutex_;
  std::vector<entry> entries_;
  std::list<std::int64_t> recent_;  // sources that are open, the one asked for last in front
  std::size_t most_open_;
};

// ---------------------------------------------------------------------------------------------

inline source_pool::source_pool(std::vector<std::filesystem::path> prefixes, std::size_t most_open)
    : most_open_(most_open) {
  if (most_open < 1) throw config_error("most_open is 0, expected 1 or more open indices");
  entries_.reserve(prefixes.size());
  for (auto& prefix : prefixes) entries_.push_back({std::move(prefix), nullptr, {}});
}

inline source_pool::source_pointer source_pool::find(std::int64_t source) {
  const std::lock_guard lock(mutex_);
  const entry& wanted = at(source);
  if (wanted.source) recent_.splice(recent_.begin(), recent_, wanted.place);
  return wanted.source;
}

inline source_pool::source_pointer source_pool::get(std::int64_t source) {
  if (auto open = find(source)) return open;
  entry& wanted = entries_[static_cast<std::size_t>(source)];
  const std::lock_guard opening(*wanted.opening);
  if (auto open = find(source)) return open;  // another thread was as quick
  auto opened = std::make_shared<const document_search>(index_columns(wanted.prefix));
  source_pointer closed;  // what the pool lets go of is unmapped after the lock
  const std::lock_guard lock(mutex_);
  if (recent_.size() == most_open_) {
    entry& oldest = entries_[static_cast<std::size_t>(recent_.back())];
    closed = std::move(oldest.source);
    oldest.source = nullptr;
    recent_.pop_back();
  }
  recent_.push_front(source);
  wanted.place = recent_.begin();
  wanted.source = opened;
  return opened;
}

inline std::size_t source_pool::open_count() const {
  const std::lock_guard lock(mutex_);
  return recent_.size();
}

}  // namespace millrace::dataset
