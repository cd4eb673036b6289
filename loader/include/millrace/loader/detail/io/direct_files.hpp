// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/open_files.hpp>

namespace millrace::loader {

/// The files that one reader has open for direct reads. Their number is bounded. Each open file has
/// a place, which is an index: 0, 1, 2, ... An io_uring ring uses the same indices in its file
/// table. If there is no free place, a new file takes the place of the least recently used file.
/// Not thread-safe.
class direct_files {
 public:
  /// @param files  number of files of the reader
  /// @param most   maximum number of files open at a time, at least 1; `table` may permit fewer
  direct_files(std::size_t files, std::size_t most, std::shared_ptr<open_files> table)
      : place_of_(files, none), most_(most), table_(std::move(table)) {}

  static constexpr std::size_t none = ~std::size_t{0};

  /// Returns the place of a file, or `none` if the file is not open. Marks the file as used now.
  std::size_t find(std::int64_t file) noexcept {
    const std::size_t place = place_of_[static_cast<std::size_t>(file)];
    if (place != none) open_[place].last_use = ++clock_;
    return place;
  }

  /// The place for the next file to open.
  struct next_place {
    std::size_t place;
    std::int64_t loser;  ///< the file that has the place now and will be closed; -1: none
  };
  next_place next() const {
    if (open_.empty() || (open_.size() < most_ && table_->may_lend())) return {open_.size(), -1};
    const auto least = std::ranges::min_element(open_, {}, &entry::last_use);
    return {static_cast<std::size_t>(least - open_.begin()), least->file};
  }

  /// Stores an open file in a place. Closes the file that had this place.
  /// @param at  result of `next()`; `put` must not have been called since then
  void put(std::int64_t file, io::unique_fd fd, const next_place& at) {
    entry one{file, std::move(fd), ++clock_, table_->lend()};
    if (at.loser < 0) {
      open_.push_back(std::move(one));
    } else {
      place_of_[static_cast<std::size_t>(at.loser)] = none;
      open_[at.place] = std::move(one);
    }
    place_of_[static_cast<std::size_t>(file)] = at.place;
  }

  int fd_at(std::size_t place) const noexcept { return open_[place].fd.get(); }

  void close_all() noexcept {
    open_.clear();
    std::ranges::fill(place_of_, none);
  }

 private:
  struct entry {
    std::int64_t file = 0;
    io::unique_fd fd;
    std::uint64_t last_use = 0;
    open_files::lent counts;
  };

  std::vector<std::size_t> place_of_;  // indexed by file
  std::vector<entry> open_;            // indexed by place
  std::size_t most_;
  std::shared_ptr<open_files> table_;
  std::uint64_t clock_ = 0;
};

}  // namespace millrace::loader
