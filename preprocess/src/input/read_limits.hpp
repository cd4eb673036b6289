// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>

namespace millrace::preprocess {

/// How inputs are read. None of it changes output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< about what a block has: the unit of work
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< a longer line is not kept in memory
  std::filesystem::path spool_folder = ".";          ///< for giant lines of compressed inputs
  /// Not zero: a giant line is given up, as line_abandoned says. Null if nothing sets it.
  const std::atomic<int>* stop = nullptr;

  /// Of an archive that is read from the middle: a part of it is decompressed into memory as a
  /// whole.
  std::size_t largest_part_bytes() const noexcept {
    return std::min(giant_bytes, std::size_t{8} << 20);
  }
};

}  // namespace millrace::preprocess
