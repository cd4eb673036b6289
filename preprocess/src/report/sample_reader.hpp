// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// The bytes [begin, end) of one file.
struct sample_range {
  std::size_t file = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const sample_range&) const = default;
};

/// A place to sample: contiguous bytes, usually in one file, but in several if files are small.
using sample_place = std::vector<sample_range>;

/// Returns at most `count` places of `place_bytes` each. The places are spread evenly over the
/// bytes of all files, as if the files were concatenated, so that each byte is equally likely to be
/// sampled. The same arguments always give the same places. The order of the places is scattered,
/// so that the first few places are spread evenly too.
std::vector<sample_place> sample_places(std::span<const std::uint64_t> file_sizes,
                                        std::size_t count, std::uint64_t place_bytes);

/// Spreads `count` points evenly over the bytes of all files, and returns the index of the file for
/// each point. The points are in the order of sample_places(). A large file may occur more than
/// once; an empty file never occurs.
std::vector<std::size_t> sample_files(std::span<const std::uint64_t> file_sizes, std::size_t count);

/// Receives complete lines of one input. The lines, and `record_parser::padding_bytes` bytes after
/// them, are readable until the call returns.
using take_lines = std::function<void(std::string_view lines)>;

/// Largest size in bytes of a line in a sample. Longer lines are not sampled.
inline constexpr std::size_t longest_sampled_line = std::size_t{64} << 20;

/// Reads the lines that start within a range of an uncompressed file. Reads the last line to its
/// end, even if that is after the range. So if ranges are adjacent, each line belongs to exactly
/// one range. Skips a byte order mark.
class sample_reader {
 public:
  /// Calls `take` with the lines that start in `range`, unless there are none.
  ///
  /// @return false if a line is longer than longest_sampled_line. In that case, `take` is not
  /// called.
  /// @throws io_error  the file cannot be read.
  bool read(const input_file& file, const sample_range& range, const take_lines& take);

 private:
  std::vector<char> buffer_;
};

/// The part of a compressed file that was read.
struct compressed_sample {
  std::uint64_t text_bytes = 0;  ///< decompressed bytes passed to `take`
  /// Decompressed bytes per byte on disk; 0 if too little was read to compute it.
  double compression_ratio = 0;
  bool whole = false;  ///< the file was read to its end
};

/// Reads a file of any compression from its start, with open_input(), and passes its lines to
/// `take` in pieces of about `piece_bytes`. Stops after about `enough_bytes`, or after up to 8
/// times as many if the compression ratio is not known well yet. Also stops at the end of the file,
/// and at a line longer than longest_sampled_line.
///
/// @throws io_error, format_error  as byte_source::read.
compressed_sample read_start(const input_file& file, std::size_t piece_bytes,
                             std::uint64_t enough_bytes, const take_lines& take);

}  // namespace millrace::preprocess
