// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// How much of the process the readers may take. 0 is a default, made of the limits of the process.
struct open_file_limits {
  /// Descriptors, those of mapped files and of direct reads included. 0: half of RLIMIT_NOFILE,
  /// from 4 to 8,192.
  std::int64_t files = 0;
  /// Maps, at most 3/4 of `files`, as each holds a descriptor. 0: 4,096. Less from then on
  /// that the kernel or the file system refuses one.
  std::int64_t maps = 0;
  /// Bytes of files that are mapped. What is touched of it costs 1/512 in page tables.
  /// 0: 16 times the memory of the machine.
  std::uint64_t mapped_bytes = 0;
  /// Files longer than this are mapped in parts of it. A multiple of 2 MiB. 0: 64 GiB.
  std::uint64_t map_bytes = 0;
};

/// What is open, of all files of a table.
struct open_file_usage {
  std::int64_t files = 0;
  std::int64_t most_files = 0;
  std::int64_t maps = 0;
  std::int64_t most_maps = 0;
  std::int64_t opens = 0;     ///< calls of open(2) that succeeded
  std::int64_t mmaps = 0;     ///< maps that were made
  std::int64_t refusals = 0;  ///< opens and maps that failed for a limit
};

/// The same with defaults in place of what is 0, and no number beyond what the others allow for.
MILLRACE_EXPORT open_file_limits filled_in(open_file_limits limits) noexcept;

}  // namespace millrace::loader
