// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// Returns the complete records of a journal, in order, and sets `size` to the offset at which they
/// end. Needs no lock: if another process is appending a record, that record counts as incomplete.
std::vector<std::vector<std::byte>> whole_records(const io::unique_fd& fd,
                                                  const std::filesystem::path& path,
                                                  std::uint64_t& size);

/// A file of records. If the process is killed, an appended record is either complete or absent.
/// Only one process at a time can have the file open. Not thread-safe.
class journal_file {
 public:
  /// Opens or creates the file, and locks it.
  ///
  /// @throws io_error      the folder is not writable.
  /// @throws config_error  another process holds the file.
  explicit journal_file(std::filesystem::path path);

  /// Returns the complete records, in order. The next append() drops the bytes that follow them.
  ///
  /// @throws config_error  the file is neither a journal nor the start of a journal.
  std::vector<std::vector<std::byte>> read();

  /// Adds a record. It is durable when this returns.
  void append(std::span<const std::byte> payload);
  /// Removes all records, durably.
  void clear();
  /// Makes all file names in the folder of the file durable.
  void sync_names();
  /// Removes the file. Keeps the lock until the object is destroyed.
  void remove();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void expect_torn() const;
  void sync();

  std::filesystem::path path_;
  io::unique_fd folder_;  // opened early, because descriptors may run out later
  io::unique_fd fd_;
  std::uint64_t size_ = 0;  // total size of the complete records
};

}  // namespace millrace::preprocess
