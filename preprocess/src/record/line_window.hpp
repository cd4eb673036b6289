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

/// A line that lies in a file, without its end.
struct line_range {
  const io::unique_fd& fd;     ///< open for reading, a regular file; used by pread alone
  std::filesystem::path path;  ///< for messages
  std::uint64_t begin_bytes = 0;
  std::uint64_t end_bytes = 0;
  /// Not zero: it is read no further, as line_abandoned says. Null if nothing sets it.
  const std::atomic<int>* stop = nullptr;

  std::uint64_t size_bytes() const noexcept { return end_bytes - begin_bytes; }
};

/// Reads a line front to back through a buffer of fixed size, and checks that it is UTF-8. What is
/// at hand ends where a character does. The file is read, not mapped: mapped pages would count as
/// memory of the process. For one thread.
class line_window {
 public:
  static constexpr std::size_t least_bytes = 16;

  /// @param line  its descriptor outlives this
  /// @param offset_bytes  where in the line to begin, at the start of a character
  /// @pre window_bytes >= least_bytes, offset_bytes <= line.size_bytes()
  line_window(line_range line, std::size_t window_bytes, std::uint64_t offset_bytes = 0);

  /// Reads more of the line; what is before `at` may go, what is from there on stays.
  ///
  /// @return false if nothing came, for the line has ended or is not UTF-8.
  /// @pre end - at < 8
  /// @throws io_error  it cannot be read, or the file has become shorter.
  /// @throws line_abandoned
  bool refill();

  std::size_t offset(const char* place) const noexcept {
    return static_cast<std::size_t>(base_ + static_cast<std::uint64_t>(place - buffer_.get()));
  }
  /// Where in the line the first byte is that begins no well-formed sequence, of what was read.
  std::optional<std::uint64_t> invalid() const noexcept { return invalid_; }

  const char* at;   ///< what is at hand begins here: its user moves on
  const char* end;  ///< and ends here

 private:
  line_range line_;
  std::size_t size_;
  std::unique_ptr<char[]> buffer_;
  std::size_t filled_ = 0;  // bytes in the buffer; after `end` is the start of a character
  std::uint64_t base_;      // in the line, of the buffer's first byte
  std::optional<std::uint64_t> invalid_;
};

}  // namespace millrace::preprocess
