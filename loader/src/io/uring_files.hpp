// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/direct_file.hpp>
#include <millrace/loader/detail/io/direct_files.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_log.hpp>

#include "uring_ring.hpp"

namespace millrace::loader {

/// The files of one reader. The ring reads a file directly if possible: it bypasses the page cache,
/// and the file has a place in the ring's table. Otherwise pread reads the file. Only one thread
/// may use this class, but any thread may call `all_plain`.
class MILLRACE_EXPORT uring_files {
 public:
  static constexpr std::size_t none = direct_files::none;

  /// @param most  the most files that may be open for direct reads at a time
  /// @param log   records which files can be read directly, and why others cannot; must outlive
  ///              this object
  uring_files(const std::vector<data_file>& files, std::shared_ptr<open_files> table,
              std::size_t most, reader_log& log)
      : table_(std::move(table)),
        log_(&log),
        states_(files.size()),
        open_(files.size(), most, table_) {
    files_.reserve(files.size());
    for (const data_file& file : files) files_.push_back(table_->attach(file));
  }

  open_files::file& operator[](std::int64_t file) const {
    return *files_[static_cast<std::size_t>(file)];
  }

  /// True if a file is read directly. The first call opens the file for direct reads. If opening it
  /// fails only temporarily, returns false this time.
  bool is_direct(std::int64_t file, uring_ring& ring);

  /// Makes pread read the file from now on.
  void demote(std::int64_t file, const std::string& why);

  /// Returns the place of a directly read file in the ring's table. Reopens the file if it was
  /// closed to make room for another file. Returns `none` if that fails.
  std::size_t place_of(std::int64_t file, uring_ring& ring);
  int fd_at(std::size_t place) const noexcept { return open_.fd_at(place); }

  /// @pre is_direct(file)
  direct_alignment alignment_of(std::int64_t file) const noexcept {
    return states_[static_cast<std::size_t>(file)].alignment;
  }

  /// Closes the files of a ring that is being retired.
  void close_direct() noexcept { open_.close_all(); }

  /// True if there are files and none of them is read directly. May be called from any thread.
  bool all_plain() const noexcept { return !files_.empty() && plain_ == files_.size(); }

 private:
  enum class way : std::uint8_t { unknown, direct, plain };
  struct file_state {
    way by = way::unknown;
    direct_alignment alignment;
  };

  std::size_t put(std::int64_t file, io::unique_fd fd, uring_ring& ring);

  std::shared_ptr<open_files> table_;
  reader_log* log_;
  std::vector<std::shared_ptr<open_files::file>> files_;
  std::vector<file_state> states_;  // indexed by file
  direct_files open_;
  std::atomic<std::size_t> plain_{0};
};

}  // namespace millrace::loader
