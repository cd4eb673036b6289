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

#include <millrace/io/unique_fd.hpp>

#include "input/byte_buffer.hpp"
#include "input/seekable_input.hpp"

namespace millrace::preprocess {

/// A line too long to be kept in memory: its bytes lie in a file, which may have no name.
struct giant_line {
  std::shared_ptr<const io::unique_fd> file;
  std::filesystem::path path;      ///< of the file, for messages
  std::uint64_t begin = 0;         ///< in that file
  std::uint64_t end = 0;           ///< in that file, without the line end
  std::uint64_t offset_bytes = 0;  ///< of the line, in the decompressed input
  std::uint64_t size_bytes = 0;    ///< with its line end, and a byte order mark in front
  std::uint64_t mark_bytes = 0;    ///< of the mark, which is no part of [begin, end)
  bool is_blank = true;            ///< has nothing but white space
  std::uint32_t crc32c = 0;        ///< of these bytes
};

/// A stretch of an input that is still to be read, by whoever turns the block into ids.
///
/// It owns the lines that begin behind a line end in [begin, end), so that stretches side by side
/// share all lines, each to one of them, without looking at each other's bytes.
struct unread_span {
  std::shared_ptr<const seekable_input> from;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< where it is `begin`, only the line that begins there is owned
  bool at_line = false;   ///< a line begins at `begin`, and is owned as well
};

/// A piece of one input that begins where a line begins and ends where one ends.
struct byte_block {
  std::size_t input = 0;          ///< index of the file in the plan
  std::uint64_t begin_bytes = 0;  ///< of the piece, in the decompressed input
  std::uint64_t end_bytes = 0;
  std::uint64_t read_bytes = 0;  ///< bytes on disk read so far, over all inputs

  std::optional<unread_span> unread;  ///< then `begin_bytes` and the next four are not yet known
  byte_buffer buffer;                 ///< has text_padding_bytes after the text
  std::size_t text_at = 0;            ///< in `buffer`: behind what belongs to other blocks
  std::size_t text_bytes = 0;
  std::size_t mark_bytes = 0;       ///< of a byte order mark, at the front of the text
  std::optional<giant_line> giant;  ///< follows the text

  /// The lines, without a byte order mark.
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(buffer.data()) + text_at + mark_bytes,
            text_bytes - mark_bytes};
  }
  /// Of text(), in the decompressed input.
  std::uint64_t text_offset() const noexcept { return begin_bytes + mark_bytes; }
};

/// How inputs are read. None of it changes output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< about what a block has: the unit of work
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< a longer line is not kept in memory
  std::filesystem::path spool_folder = ".";          ///< for giant lines of compressed inputs
  /// Not zero: a giant line is given up, as line_abandoned says. Null if nothing sets it.
  const std::atomic<int>* stop = nullptr;

  /// Of an archive that is read from the middle: a part of it is decompressed into memory as a
  /// whole.
  std::size_t largest_part_bytes() const noexcept {
    return std::min(giant_bytes, std::size_t{8} << 20);
  }
};

}  // namespace millrace::preprocess
