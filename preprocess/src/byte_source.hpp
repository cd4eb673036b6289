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

  /// Fills `out` and returns its size, or less at the end of the input only.
  ///
  /// @throws io_error      the file cannot be read.
  /// @throws format_error  compressed data is damaged or cut off; the offset counts decompressed
  ///                       bytes.
  virtual std::size_t read(std::span<std::byte> out) = 0;

  /// Bytes of the file on disk that were read so far: what a progress bar shows.
  virtual std::uint64_t position_bytes() const noexcept = 0;
};

/// @throws io_error  the file cannot be opened.
std::unique_ptr<byte_source> open_input(const input_file& file);

}  // namespace millrace::preprocess
