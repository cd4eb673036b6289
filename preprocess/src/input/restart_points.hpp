// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// A place in a packed file from which it can be unpacked without what is before.
struct restart_point {
  std::uint64_t packed_offset = 0;  ///< in the file
  std::uint64_t text_offset = 0;    ///< of the same place, in the decompressed bytes
  bool operator==(const restart_point&) const = default;
};

/// Where a gzip file of several members or a zstd file of several frames may be cut into pieces
/// that are unpacked apart, found without unpacking it.
///
/// A pure function of the file's bytes. The first point is {0, 0}; the last is the end, {size of
/// the file, size of its text}; both numbers grow from each point to the next, the text by 1 MiB at
/// least but for the last piece. So N + 1 points are N pieces, N >= 2. Empty for a file that is
/// better read from its front, or is not sound as far as is seen here:
///
/// - plain, bzip2 or xz; or one piece alone;
/// - a zstd frame that does not say its size, or says more than 1 GiB;
/// - a gzip member of more than 64 MiB (packed) that does not say its size, as BGZF's do. To find
///   its end, all of it has to be searched.
///
/// The points are well founded but not proved: who unpacks from one (open_input_at) learns for
/// sure. A gzip member of 4 GiB of text or more, packed by a factor above 64, is what it would take
/// to mislead this in a sound file: its text is then refused, not lost.
///
/// @throws io_error  the file cannot be opened or read.
std::vector<restart_point> find_restart_points(const input_file& file);

}  // namespace millrace::preprocess
