// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <millrace/io/unique_fd.hpp>

namespace millrace::preprocess {

/// The whole records of a journal, in order; `size` is where they end. No lock is needed: what is
/// being appended is not whole yet.
std::vector<std::vector<std::byte>> whole_records(const io::unique_fd& fd,
                                                  const std::filesystem::path& path,
                                                  std::uint64_t& size);

/// A file of records, each whole or not there, that one process at a time may have open. For one
/// thread at a time.
class journal_file {
 public:
  /// @throws io_error      the folder refuses.
  /// @throws config_error  another process has it.
  explicit journal_file(std::filesystem::path path);

  /// The whole records, in order. Whatever follows them is dropped by the next append().
  /// @throws config_error  the file holds something that is no journal, nor the start of one.
  std::vector<std::vector<std::byte>> read();

  /// Adds a record; safe on return.
  void append(std::span<const std::byte> payload);
  /// Safe on return, too.
  void clear();
  /// Makes the names in its folder safe, its own and those of the files beside it.
  void sync_names();
  /// Removes the file. The lock stays until the end.
  void remove();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void expect_torn() const;
  void sync();

  std::filesystem::path path_;
  io::unique_fd folder_;  // opened early: later there may be no descriptor to be had
  io::unique_fd fd_;
  std::uint64_t size_ = 0;  // of the whole records
};

}  // namespace millrace::preprocess
