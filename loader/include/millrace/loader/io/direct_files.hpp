// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <millrace/io/unique_fd.hpp>

namespace millrace::loader {

/// The files of one reader that are open for direct reads, a bounded number of them: they have
/// places, as in the table of files of a ring, and the one that was not used for the longest time
/// gives up its own. Used by one thread.
class direct_files {
 public:
  /// @param files  of the reader
  /// @param most   that are open at a time, 1 or more
  direct_files(std::size_t files, std::size_t most) : place_of_(files, none), most_(most) {}

  static constexpr std::size_t none = ~std::size_t{0};

  /// The place of a file, as of one that is used now, or `none`.
  std::size_t find(std::int64_t file) noexcept {
    const std::size_t place = place_of_[static_cast<std::size_t>(file)];
    if (place != none) open_[place].last_use = ++clock_;
    return place;
  }

  /// Whether `put` would close a file.
  bool is_full() const noexcept { return open_.size() >= most_; }

  /// Gives a file a place, which another one may lose for it.
  std::size_t put(std::int64_t file, io::unique_fd fd) {
    std::size_t place = open_.size();
    if (!is_full()) {
      open_.emplace_back();
    } else {
      const auto least = std::ranges::min_element(open_, {}, &entry::last_use);
      place = static_cast<std::size_t>(least - open_.begin());
      place_of_[static_cast<std::size_t>(least->file)] = none;
    }
    open_[place] = {file, std::move(fd), ++clock_};
    place_of_[static_cast<std::size_t>(file)] = place;
    return place;
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
  };

  std::vector<std::size_t> place_of_;  // [file]
  std::vector<entry> open_;            // [place]
  std::size_t most_;
  std::uint64_t clock_ = 0;
};

}  // namespace millrace::loader
