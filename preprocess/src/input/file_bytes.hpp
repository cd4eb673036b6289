// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/page_cache.hpp>
#include <millrace/io/detail/unique_fd.hpp>

#include "input/byte_source.hpp"

namespace millrace::preprocess {

/// The raw bytes of a file, pipe or device.
class file_bytes final : public byte_source {
 public:
  /// Opens the file. Opening a FIFO does not wait for its writer, but read() does.
  ///
  /// @param offset  byte at which to begin; nonzero only for a regular file
  /// @throws io_error  the file cannot be opened.
  explicit file_bytes(const input_file& file, std::uint64_t offset = 0);

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return position_ - head_.size(); }
  void cancel() noexcept override;

  /// Returns the next `size` bytes, or fewer at the end. read() still returns them afterwards.
  ///
  /// @throws io_error  as read().
  std::span<const std::byte> peek(std::size_t size);

  bool is_regular() const noexcept { return regular_; }
  /// The path as shown in messages.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::size_t read_file(std::span<std::byte> out);
  bool wait();

  std::filesystem::path path_;
  io::unique_fd fd_;
  io::unique_fd cancelled_;  // an eventfd, readable after cancel(); empty for a regular file
  bool regular_ = false;
  io::page_cache pages_ = io::page_cache::keep;
  std::uint64_t position_ = 0;   // offset of the first byte not yet read from the file
  std::vector<std::byte> head_;  // bytes that peek() has read, but read() has not returned
};

/// The error for a file that became shorter.
///
/// @param end  byte at which the file ended too early
inline format_error became_shorter(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became shorter while it was being read"};
}

/// The error for a file that became longer.
///
/// @param end  byte at which the file should have ended
inline format_error became_longer(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became longer while it was being read"};
}

/// Checks that a file that was read to its end still has the size that it had when the run was
/// planned. No decoder would notice that a compressed file was truncated or extended exactly at the
/// end of a member or frame.
///
/// @throws format_error  the two sizes differ.
inline void expect_whole(const std::filesystem::path& path, std::uint64_t read,
                         std::uint64_t planned) {
  if (read < planned) throw became_shorter(path, read);
  if (read > planned) throw became_longer(path, planned);
}

}  // namespace millrace::preprocess
