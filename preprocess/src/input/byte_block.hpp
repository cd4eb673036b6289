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

/// A line too long for memory. Its bytes are in the input file or in an unnamed copy.
struct giant_line {
  std::shared_ptr<const io::unique_fd> file;
  std::filesystem::path path;      ///< path of the file, for messages
  std::uint64_t begin = 0;         ///< offset of the line in `file`, after any byte order mark
  std::uint64_t end = 0;           ///< offset in `file` at which the text ends, before the line end
  std::uint64_t offset_bytes = 0;  ///< offset of the line in the decompressed input
  std::uint64_t size_bytes = 0;    ///< size of the line, with its line end and byte order mark
  std::uint64_t mark_bytes = 0;    ///< size of the byte order mark, which is not in [begin, end)
  bool is_blank = true;            ///< the line has only white space
  std::uint32_t crc32c = 0;        ///< checksum of all `size_bytes` bytes
};

/// A span (a range of bytes or rows) of an input. The worker that encodes the block will read it.
///
/// A span of bytes owns each line that directly follows a line end in [begin, end). So every line
/// belongs to exactly one of the neighboring spans, and no span needs to read bytes before its
/// `begin`.
struct unread_span {
  std::shared_ptr<const seekable_input> from;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< if `end == begin`, the span owns only the line that begins there
  bool at_line = false;   ///< a line begins at `begin`, and the span owns it too
  std::uint64_t page_offset = 0;  ///< of rows: as in row_span
};

/// A part of one input that consists of whole lines.
struct byte_block {
  std::size_t input = 0;  ///< index of the input in the plan
  /// Each line is a row of a table, and the two numbers below are rows.
  bool has_rows = false;
  std::uint64_t begin = 0;  ///< offset in the decompressed input
  std::uint64_t end = 0;
  std::uint64_t read_bytes = 0;  ///< bytes on disk read so far from all inputs

  /// Rows to read after `end`, up to this one: see read_more_rows(). 0 if there are none.
  std::uint64_t rows_end = 0;
  std::optional<unread_span>
      unread;               ///< if set, read_span() must still set the text and its bounds
  byte_buffer buffer;       ///< has text_padding_bytes after the text
  std::size_t text_at = 0;  ///< offset in `buffer`; earlier bytes belong to other blocks
  std::size_t text_bytes = 0;
  std::size_t mark_bytes = 0;       ///< size of a byte order mark at the start of the text
  std::optional<giant_line> giant;  ///< a giant line that follows the text

  /// The lines, without a byte order mark.
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(buffer.data()) + text_at + mark_bytes,
            text_bytes - mark_bytes};
  }
  /// Offset of text() in the decompressed input, or the first row.
  std::uint64_t text_offset() const noexcept { return begin + mark_bytes; }
};

/// Settings for reading inputs. They do not affect the output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< approximate size of a block
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< longer lines are not kept in memory
  std::filesystem::path spool_folder = ".";          ///< folder for copies of giant lines
  /// If `*stop` becomes nonzero while a giant line is read, reading stops with line_abandoned.
  /// `stop` may be null.
  const std::atomic<int>* stop = nullptr;

  /// Most text bytes in a part of a compressed file (gzip members or zstd frames). If a part has
  /// more text, the file is read only from its start. Otherwise, each part is decompressed as a
  /// whole into memory.
  std::size_t largest_part_bytes() const noexcept {
    return std::min(giant_bytes, std::size_t{8} << 20);
  }
};

}  // namespace millrace::preprocess
