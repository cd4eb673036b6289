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

/// The bytes of a file, pipe or device as they are.
class file_bytes final : public byte_source {
 public:
  /// Does not wait for the writer of a FIFO: reading does.
  ///
  /// @param offset  where to begin; other than 0 only in a regular file
  /// @throws io_error  it cannot be opened.
  explicit file_bytes(const input_file& file, std::uint64_t offset = 0);

  std::size_t read(std::span<std::byte> out) override;
  std::uint64_t position_bytes() const noexcept override { return position_ - head_.size(); }
  void cancel() noexcept override;

  /// The next bytes, which read() gives again: `size` of them, or all up to the end.
  ///
  /// @throws io_error  as read().
  std::span<const std::byte> peek(std::size_t size);

  bool is_regular() const noexcept { return regular_; }
  /// As messages call it.
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::size_t read_file(std::span<std::byte> out);
  bool wait();

  std::filesystem::path path_;
  io::unique_fd fd_;
  io::unique_fd cancelled_;  // an eventfd, readable once cancel() was called; none for a file
  bool regular_ = false;
  io::page_cache pages_ = io::page_cache::keep;
  std::uint64_t position_ = 0;   // behind head_
  std::vector<std::byte> head_;  // peeked at, not yet given
};

/// @param end  byte at which the file ended, before it should have
inline format_error became_shorter(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became shorter while it was being read"};
}

/// @param end  byte at which the file should have ended
inline format_error became_longer(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became longer while it was being read"};
}

/// Compares how far a file was read that ended, with how long it was when the run was planned. What
/// is compressed may be cut off, or get more, right where one of its parts ends: then no decoder
/// finds anything wrong.
/// @throws format_error  they differ
inline void expect_whole(const std::filesystem::path& path, std::uint64_t read,
                         std::uint64_t planned) {
  if (read < planned) throw became_shorter(path, read);
  if (read > planned) throw became_longer(path, planned);
}

}  // namespace millrace::preprocess
