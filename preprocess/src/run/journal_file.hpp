// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// The complete records of a journal, in order; `size` is set to their end. Needs no lock: a record
/// that is being appended is not complete yet.
std::vector<std::vector<std::byte>> whole_records(const io::unique_fd& fd,
                                                  const std::filesystem::path& path,
                                                  std::uint64_t& size);

/// A file of records that are complete or absent. One process at a time may have it open. For one
/// thread at a time.
class journal_file {
 public:
  /// @throws io_error      the folder is not writable.
  /// @throws config_error  another process holds it.
  explicit journal_file(std::filesystem::path path);

  /// The complete records, in order. The next append() drops whatever follows them.
  /// @throws config_error  the file is neither a journal nor the start of one.
  std::vector<std::vector<std::byte>> read();

  /// Adds a record; durable on return.
  void append(std::span<const std::byte> payload);
  /// Removes all records; durable on return.
  void clear();
  /// Makes the names in its folder durable: its own and those of the files beside it.
  void sync_names();
  /// Removes the file. The lock stays until the end.
  void remove();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void expect_torn() const;
  void sync();

  std::filesystem::path path_;
  io::unique_fd folder_;  // opened early, because later no descriptor may be available
  io::unique_fd fd_;
  std::uint64_t size_ = 0;  // of the complete records
};

}  // namespace millrace::preprocess
