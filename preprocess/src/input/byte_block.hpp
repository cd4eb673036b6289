// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include <millrace/io/detail/unique_fd.hpp>

#include "input/byte_buffer.hpp"
#include "input/seekable_input.hpp"

namespace millrace::preprocess {

/// A line too long for memory. Its bytes are in a file, which may be unnamed.
struct giant_line {
  std::shared_ptr<const io::unique_fd> file;
  std::filesystem::path path;      ///< path of the file, for messages
  std::uint64_t begin = 0;         ///< offset of the line in that file, after a byte order mark
  std::uint64_t end = 0;           ///< offset of its end in that file, before the line end
  std::uint64_t offset_bytes = 0;  ///< offset of the line in the decompressed input
  std::uint64_t size_bytes = 0;    ///< size with the line end and a leading byte order mark
  std::uint64_t mark_bytes = 0;    ///< size of the byte order mark, which is not in [begin, end)
  bool is_blank = true;            ///< the line has only white space
  std::uint32_t crc32c = 0;        ///< checksum of all `size_bytes` bytes
};

/// A span of an input that the worker which encodes the block will read.
///
/// The span owns the lines that begin after a line end in [begin, end). So neighboring spans
/// together own every line exactly once, and no span needs to read the bytes of another.
struct unread_span {
  std::shared_ptr<const seekable_input> from;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< if equal to `begin`, the span owns only the line that begins there
  bool at_line = false;   ///< a line begins at `begin`, and the span owns it too
};

/// A part of one input that consists of whole lines.
struct byte_block {
  std::size_t input = 0;          ///< index of the input in the plan
  std::uint64_t begin_bytes = 0;  ///< offset in the decompressed input
  std::uint64_t end_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< bytes on disk read so far from all inputs

  std::optional<unread_span>
      unread;               ///< if set, read_span() must still fill in the text and its bounds
  byte_buffer buffer;       ///< has text_padding_bytes after the text
  std::size_t text_at = 0;  ///< offset of the text in `buffer`, after bytes of other blocks
  std::size_t text_bytes = 0;
  std::size_t mark_bytes = 0;       ///< size of a byte order mark at the start of the text
  std::optional<giant_line> giant;  ///< a giant line that follows the text

  /// The lines, without a byte order mark.
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(buffer.data()) + text_at + mark_bytes,
            text_bytes - mark_bytes};
  }
  /// Offset of text() in the decompressed input.
  std::uint64_t text_offset() const noexcept { return begin_bytes + mark_bytes; }
};

/// Sizes and places used for reading inputs. They do not affect the output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< approximate size of a block
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< longer lines are not kept in memory
  std::filesystem::path spool_folder = ".";          ///< for giant lines of compressed inputs
  /// If `*stop` is not zero, a giant line is abandoned with line_abandoned. May be null.
  const std::atomic<int>* stop = nullptr;

  /// Largest member or frame of a compressed file that can be read on its own, from the middle of
  /// the file. Such a part is decompressed into memory as a whole.
  std::size_t largest_part_bytes() const noexcept {
    return std::min(giant_bytes, std::size_t{8} << 20);
  }
};

}  // namespace millrace::preprocess
