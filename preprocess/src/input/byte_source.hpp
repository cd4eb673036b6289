// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "input/input_plan.hpp"
#include "input/restart_points.hpp"

namespace millrace::preprocess {

/// The decompressed bytes of one input, read sequentially. Only cancel() is thread-safe.
class byte_source {
 public:
  virtual ~byte_source() = default;

  /// Reads the next bytes into `out`. Returns the number of bytes read: at least one, or 0 at the
  /// end of the input.
  ///
  /// @pre `out` is not empty; no earlier call threw.
  /// @throws io_error      the file cannot be read.
  /// @throws format_error  compressed data is damaged or truncated, or a JSON array is malformed.
  ///                       Earlier calls returned all bytes before the damage. The offset counts
  ///                       decompressed bytes from the start of the file.
  /// @throws config_error  the data in a pipe needs a library that this build lacks, or a zstd
  ///                       frame needs more memory than input_file::most_window_bytes.
  virtual std::size_t read(std::span<std::byte> out) = 0;

  /// Approximate offset in the file on disk at which the data returned so far ends. Used for
  /// progress bars.
  virtual std::uint64_t position_bytes() const noexcept = 0;

  /// If read() is waiting for a pipe, makes it stop waiting. Any thread may call this. After this
  /// call, the caller must ignore what read() returns or throws.
  virtual void cancel() noexcept = 0;
};

/// Opens a whole input as JSON lines: decompressed, and converted by `array_lines` if it is one
/// JSON array, or by `table_input` if it is a Parquet file. Unless the input is an uncompressed
/// regular file of JSON lines, a separate thread reads ahead. The compression of a pipe is detected
/// from its first bytes.
///
/// @throws io_error      the file cannot be opened.
/// @throws config_error  this build has no library for the compression.
std::unique_ptr<byte_source> open_input(const input_file& file);

/// Opens the decompressed bytes of a regular file from a restart point (a place at which
/// decompression can start) to the end of the file. The caller's thread does the reading. In an
/// uncompressed file, `{n, n}` is a restart point for every n, even past the end of the file. A
/// JSON array is not converted to lines: see is_array().
///
/// @param later  the restart points after `from`, as find_restart_points() returns them; the last
///               is the end of the file. Must outlive the source; empty for an uncompressed file.
///               Before read() returns the last byte before a restart point, it verifies the point:
///               one member or frame, with a correct checksum, must end there, and the next member
///               or frame must begin there. So a caller that reads from one point to the next knows
///               that no text is missing.
/// @throws io_error      the file cannot be opened.
/// @throws config_error  this build has no library for the compression.
std::unique_ptr<byte_source> open_input_at(const input_file& file, restart_point from,
                                           std::span<const restart_point> later = {});

/// Returns whether the text of a regular file is one JSON array. It is if the first byte after any
/// byte order mark and white space is `[`. An array must be read from its start, with open_input().
///
/// @throws io_error, format_error, config_error  as open_input and read.
bool is_array(const input_file& file);

}  // namespace millrace::preprocess
