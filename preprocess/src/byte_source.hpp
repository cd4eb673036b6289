// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "input_plan.hpp"

namespace millrace::preprocess {

/// The decompressed bytes of one input, from front to back. For one thread.
class byte_source {
 public:
  virtual ~byte_source() = default;

  /// Writes the next bytes to `out`: at least one, or none at the end of the input.
  ///
  /// @pre `out` is not empty.
  /// @throws io_error      the file cannot be read.
  /// @throws format_error  compressed data is damaged or cut off. The calls before gave what
  ///                       precedes the damage (of gzip, all but a few kilobytes); the offset
  ///                       counts the decompressed bytes given.
  virtual std::size_t read(std::span<std::byte> out) = 0;

  /// Bytes of the file on disk that were read so far: what a progress bar shows.
  virtual std::uint64_t position_bytes() const noexcept = 0;
};

/// @throws io_error  the file cannot be opened.
std::unique_ptr<byte_source> open_input(const input_file& file);

}  // namespace millrace::preprocess
