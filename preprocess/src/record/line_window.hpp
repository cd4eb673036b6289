// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// The byte range of a line in a file, without its line end.
struct line_range {
  const io::unique_fd& fd;     ///< a regular file, open for reading; only pread is used
  std::filesystem::path path;  ///< path of the file, for messages
  std::uint64_t begin_bytes = 0;
  std::uint64_t end_bytes = 0;
  /// If `*stop` becomes nonzero, reading stops with line_abandoned. `stop` may be null.
  const std::atomic<int>* stop = nullptr;

  std::uint64_t size_bytes() const noexcept { return end_bytes - begin_bytes; }
};

/// Reads a line sequentially through a buffer of fixed size, and checks that the line is UTF-8. The
/// bytes in [`at`, `end`) always end at a character boundary. The file is not memory-mapped,
/// because mapped pages would count as memory of the process. Not thread-safe.
class line_window {
 public:
  static constexpr std::size_t least_bytes = 16;

  /// @param line  its descriptor must outlive this object
  /// @param offset_bytes  offset in the line at which to begin; a character must start there
  /// @pre window_bytes >= least_bytes, offset_bytes <= line.size_bytes()
  line_window(line_range line, std::size_t window_bytes, std::uint64_t offset_bytes = 0);

  /// Reads more of the line. Bytes before `at` may be dropped; the bytes from `at` on are kept.
  ///
  /// @return false if no bytes were added, because the line has ended or is not UTF-8.
  /// @pre end - at < 8
  /// @throws io_error  the line cannot be read, or the file has become shorter.
  /// @throws line_abandoned  `stop` of the line was set.
  bool refill();

  std::size_t offset(const char* place) const noexcept {
    return static_cast<std::size_t>(base_ + static_cast<std::uint64_t>(place - buffer_.get()));
  }
  /// Offset in the line of the first UTF-8 sequence that is not well-formed; empty if all bytes
  /// read so far are well-formed.
  std::optional<std::uint64_t> invalid() const noexcept { return invalid_; }

  const char* at;   ///< start of the bytes in memory; the user advances it
  const char* end;  ///< end of the bytes in memory

 private:
  line_range line_;
  std::size_t size_;
  std::unique_ptr<char[]> buffer_;
  std::size_t filled_ = 0;  // bytes in the buffer; may end with an incomplete character
  std::uint64_t base_;      // offset of the buffer's first byte in the line
  std::optional<std::uint64_t> invalid_;
};

}  // namespace millrace::preprocess
