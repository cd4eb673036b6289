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

/// The files of one reader that are open for direct reads. Their number is bounded. Each has a
/// place, an index like those of an io_uring ring's file table. The least recently used file loses
/// its place to a new one. Used by one thread.
class direct_files {
 public:
  /// @param files  number of files of the reader
  /// @param most   files open at a time, at least 1; fewer if `table` cannot lend that many
  direct_files(std::size_t files, std::size_t most, std::shared_ptr<open_files> table)
      : place_of_(files, none), most_(most), table_(std::move(table)) {}

  static constexpr std::size_t none = ~std::size_t{0};

  /// The place of a file, or `none`. Marks the file as used now.
  std::size_t find(std::int64_t file) noexcept {
    const std::size_t place = place_of_[static_cast<std::size_t>(file)];
    if (place != none) open_[place].last_use = ++clock_;
    return place;
  }

  /// The place for the next file, and the file that loses this place; `loser` is -1 if the place is
  /// new.
  struct next_place {
    std::size_t place;
    std::int64_t loser;
  };
  next_place next() const {
    if (open_.empty() || (open_.size() < most_ && table_->may_lend())) return {open_.size(), -1};
    const auto least = std::ranges::min_element(open_, {}, &entry::last_use);
    return {static_cast<std::size_t>(least - open_.begin()), least->file};
  }

  /// Gives a file a place.
  /// @param at  result of `next()`, without another `put` in between
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
