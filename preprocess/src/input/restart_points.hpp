// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// A place in a compressed file from which it can be decompressed without the bytes before it.
struct restart_point {
  std::uint64_t compressed_offset = 0;  ///< offset in the file
  std::uint64_t text_offset = 0;        ///< offset of the same place in the decompressed bytes
  bool operator==(const restart_point&) const = default;
};

/// Finds the places at which a gzip file of several members or a zstd file of several frames can be
/// cut, so that the pieces can be decompressed independently. Does not decompress the whole file.
///
/// The result depends only on the file's bytes. The first point is {0, 0}; the last is the end,
/// {size of the file, size of its text}. Both offsets increase from point to point. Every piece
/// except the last has at least 1 MiB of text. N + 1 points delimit N pieces, and N is at least 2.
/// The result is empty if the file looks damaged. It is also empty if the file must be read from
/// its start because it has:
///
/// - no compression, or bzip2 or xz compression;
/// - only one piece;
/// - a zstd frame that does not declare its size, or declares more than 1 GiB;
/// - a gzip member of more than 64 MiB (compressed) without a declared size: finding its end would
///   mean searching all of it. (BGZF members declare their size.)
///
/// The points are almost certainly right, but the source that open_input_at() returns still checks
/// them while it decompresses. In an undamaged file, the points can be wrong only if a gzip member
/// has at least 4 GiB of text, compressed by a factor above 64. In that case, reading the member
/// fails, so no text is lost silently.
///
/// @throws io_error  the file cannot be opened or read.
std::vector<restart_point> find_restart_points(const input_file& file);

}  // namespace millrace::preprocess
