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

/// A line too long for memory. Its bytes are in a file, which may have no name.
struct giant_line {
  std::shared_ptr<const io::unique_fd> file;
  std::filesystem::path path;      ///< of the file, for messages
  std::uint64_t begin = 0;         ///< in that file
  std::uint64_t end = 0;           ///< in that file, without the line end
  std::uint64_t offset_bytes = 0;  ///< of the line, in the decompressed input
  std::uint64_t size_bytes = 0;    ///< with its line end and a leading byte order mark
  std::uint64_t mark_bytes = 0;    ///< size of the mark, which is not in [begin, end)
  bool is_blank = true;            ///< only white space
  std::uint32_t crc32c = 0;        ///< of all `size_bytes`
};

/// A span of an input that the encoder of the block will read.
///
/// It owns the lines that begin after a line end in [begin, end). So neighboring spans own every
/// line exactly once, without looking at each other's bytes.
struct unread_span {
  std::shared_ptr<const seekable_input> from;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< if equal to `begin`, the span owns only the line that begins there
  bool at_line = false;   ///< a line begins at `begin`, and the span owns it too
};

/// A part of one input that consists of whole lines.
struct byte_block {
  std::size_t input = 0;          ///< index of the file in the plan
  std::uint64_t begin_bytes = 0;  ///< in the decompressed input
  std::uint64_t end_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< bytes on disk read so far, over all inputs

  std::optional<unread_span>
      unread;               ///< if set, read_span() fills in the text and its bounds later
  byte_buffer buffer;       ///< has text_padding_bytes after the text
  std::size_t text_at = 0;  ///< in `buffer`, after the bytes of other blocks
  std::size_t text_bytes = 0;
  std::size_t mark_bytes = 0;       ///< size of a byte order mark at the start of the text
  std::optional<giant_line> giant;  ///< follows the text

  /// The lines, without a byte order mark.
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(buffer.data()) + text_at + mark_bytes,
            text_bytes - mark_bytes};
  }
  /// Offset of text() in the decompressed input.
  std::uint64_t text_offset() const noexcept { return begin_bytes + mark_bytes; }
};

/// How inputs are read. Does not affect the output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< approximate size of a block
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< a longer line is not kept in memory
  std::filesystem::path spool_folder = ".";          ///< for giant lines of compressed inputs
  /// If not zero, a giant line is abandoned (line_abandoned). May be null.
  const std::atomic<int>* stop = nullptr;

  /// Largest part of an archive that is read from the middle. A part is decompressed into memory as
  /// a whole.
  std::size_t largest_part_bytes() const noexcept {
    return std::min(giant_bytes, std::size_t{8} << 20);
  }
};

}  // namespace millrace::preprocess
