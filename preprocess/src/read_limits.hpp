// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

namespace millrace::preprocess {

/// How inputs are read. None of it changes output.
struct read_limits {
  std::size_t block_bytes = std::size_t{512} << 10;  ///< about what a block has: the unit of work
  std::size_t giant_bytes = std::size_t{16} << 20;   ///< a longer line is not kept in memory
  std::filesystem::path spool_folder = ".";          ///< for giant lines of packed inputs
};

}  // namespace millrace::preprocess
