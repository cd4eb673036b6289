// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>

#include "input/byte_block.hpp"
#include "input/byte_source.hpp"

namespace millrace::preprocess {

/// The place where a giant line (a line too long for memory) begins.
struct line_place {
  std::filesystem::path input;
  std::uint64_t offset_bytes = 0;  ///< offset of the line in the decompressed input
  /// The input file if it is not compressed; otherwise null, and the line is copied to an unnamed
  /// file.
  std::shared_ptr<const io::unique_fd> plain = nullptr;
};

/// A giant line and the bytes read after it.
struct followed_line {
  giant_line line;
  std::vector<std::byte> rest;
  bool ended = false;  ///< the input ends after the line
};

/// Reads the rest of a giant line from `source`.
///
/// @param head  the bytes of the line read so far. They contain no line end, except perhaps a final
///              `\r`.
/// @throws io_error, format_error  as byte_source::read. Also io_error if the copy of the line
///                                 cannot be written.
/// @throws line_abandoned          the run was asked to stop.
followed_line follow_giant_line(byte_source& source, std::span<const std::byte> head,
                                const line_place& place, const read_limits& limits);

}  // namespace millrace::preprocess
