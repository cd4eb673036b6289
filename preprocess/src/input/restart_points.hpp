// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// A place in a compressed file from which it can be decompressed without the bytes before it.
struct restart_point {
  std::uint64_t compressed_offset = 0;  ///< in the file
  std::uint64_t text_offset = 0;        ///< of the same place, in the decompressed bytes
  bool operator==(const restart_point&) const = default;
};

/// Where a gzip file of several members or a zstd file of several frames may be cut into pieces
/// that are decompressed independently, found without decompressing it.
///
/// A pure function of the file's bytes. The first point is {0, 0}; the last is the end, {size of
/// the file, size of its text}; both numbers grow from each point to the next, the text by 1 MiB at
/// least but for the last piece. So N + 1 points are N pieces, N >= 2. Empty for a file that is
/// better read from its front, or is not sound as far as is seen here:
///
/// - plain, bzip2 or xz; or one piece alone;
/// - a zstd frame that does not say its size, or says more than 1 GiB;
/// - a gzip member of more than 64 MiB (compressed) that does not say its size, as BGZF's do:
///   to find its end, all of it would have to be searched.
///
/// The points are well founded but not proved; open_input_at() checks them as it decompresses. In a
/// sound file, only a gzip member of 4 GiB of text or more, compressed by a factor above 64, can
/// mislead this. Its text is then refused, not lost.
///
/// @throws io_error  the file cannot be opened or read.
std::vector<restart_point> find_restart_points(const input_file& file);

}  // namespace millrace::preprocess
