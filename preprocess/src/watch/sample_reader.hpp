// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "input/input_plan.hpp"
#include "watch/sample_places.hpp"

namespace millrace::preprocess {

/// Takes complete lines of one input, valid during the call. `record_parser::padding_bytes` after
/// them are readable.
using take_lines = std::function<void(std::string_view lines)>;

/// Longer lines are not sampled.
inline constexpr std::size_t longest_sampled_line = std::size_t{64} << 20;

/// Reads the lines that start within a range of a plain file, up to their ends, which may be after
/// the range. Adjacent ranges share no line and miss none. A byte order mark is skipped.
class sample_reader {
 public:
  /// Calls `take` with the lines, unless no line starts in the range.
  ///
  /// @return false if a line is longer than longest_sampled_line; then `take` is not called.
  /// @throws io_error  the file cannot be read.
  bool read(const input_file& file, const sample_range& range, const take_lines& take);

 private:
  std::vector<char> buffer_;
};

/// The part of a compressed file that was read.
struct compressed_sample {
  std::uint64_t text_bytes = 0;  ///< decompressed, passed to `take`
  /// Decompressed bytes per byte on disk; 0 if too little was read to know.
  double compression_ratio = 0;
  bool whole = false;  ///< read to its end
};

/// Reads a file with any compression from its start through its byte_source, in pieces of about
/// `piece_bytes`, until `enough_bytes` were read or the file ends.
///
/// @throws io_error, format_error  as byte_source::read.
compressed_sample read_start(const input_file& file, std::size_t piece_bytes,
                             std::uint64_t enough_bytes, const take_lines& take);

}  // namespace millrace::preprocess
