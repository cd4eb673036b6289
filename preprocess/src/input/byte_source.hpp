// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "input/input_plan.hpp"
#include "input/restart_points.hpp"

namespace millrace::preprocess {

/// The decompressed bytes of one input, from front to back. For one thread, but for cancel().
class byte_source {
 public:
  virtual ~byte_source() = default;

  /// Writes the next bytes to `out`: at least one, or none at the end of the input.
  ///
  /// @pre `out` is not empty; no call before this one threw.
  /// @throws io_error      the file cannot be read.
  /// @throws format_error  compressed data is damaged or cut off, or an array of JSON is none. The
  ///                       calls before gave what precedes the damage; the offset counts
  ///                       decompressed bytes from the front of the file.
  /// @throws config_error  a pipe brings data that this build has no library for; a zstd frame
  ///                       needs more memory than input_file::most_window_bytes.
  virtual std::size_t read(std::span<std::byte> out) = 0;

  /// How far in the file on disk the bytes given so far reach, about: what a progress bar shows.
  virtual std::uint64_t position_bytes() const noexcept = 0;

  /// From any thread: a read that waits for a pipe stops waiting, and what is read from now on,
  /// errors included, means nothing.
  virtual void cancel() noexcept = 0;
};

/// All of an input as lines of JSON: decompressed, and if it is one JSON array, as `array_lines`
/// makes it. Whatever takes more than copying runs ahead on a thread of its own, and so does a
/// pipe, whose compression is told by what it brings.
///
/// @throws io_error      the file cannot be opened.
/// @throws config_error  this build has no library for it.
std::unique_ptr<byte_source> open_input(const input_file& file);

/// The decompressed bytes of a regular file from a restart point on to the end of the file, read by
/// the caller's thread. Of a plain file every byte `{n, n}` is a restart point, also one behind its
/// end. An array of JSON is not made to lines: see is_array().
///
/// @param later  the restart points behind `from` in the list that find_restart_points() gave,
///               whose last is the end of the file; outlives the source; empty for a plain file.
///               Before a read gives the last byte in front of one, it is proved to be where a
///               member or frame ends and the next begins, whose checksum is right. So who reads
///               from one point to just the next knows that nothing is missing between the two.
/// @throws io_error      the file cannot be opened.
/// @throws config_error  this build has no library for it.
std::unique_ptr<byte_source> open_input_at(const input_file& file, restart_point from,
                                           std::span<const restart_point> later = {});

/// Whether the text of a regular file is one JSON array, which has to be read from its front
/// (open_input): its first byte that is no white space, behind an optional byte order mark, is `[`.
///
/// @throws io_error, format_error, config_error  as open_input and read.
bool is_array(const input_file& file);

}  // namespace millrace::preprocess
