// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Limits on what all readers together may use. 0 selects the default.
struct open_file_limits {
  /// Number of file descriptors, including the descriptors of mapped files and of direct reads.
  /// Default: half of RLIMIT_NOFILE, but at least 4 and at most 8,192.
  std::int64_t files = 0;
  /// Number of memory mappings (maps). Default: 4,096. At most 3/4 of `files`, because each map
  /// holds a descriptor. If the kernel or the file system refuses a map because of a limit, readers
  /// use fewer maps from then on.
  std::int64_t maps = 0;
  /// Total size of all maps, in bytes. Default: 16 times the memory of the machine. The page tables
  /// of a map take 1/512 of the size of its touched bytes.
  std::uint64_t mapped_bytes = 0;
  /// Size of one map in bytes, a multiple of 2 MiB. Default: 64 GiB. A longer file needs several
  /// maps.
  std::uint64_t map_bytes = 0;
};

/// Counts over all files of a table.
struct open_file_usage {
  std::int64_t files = 0;       ///< descriptors open now
  std::int64_t most_files = 0;  ///< largest value of `files` so far
  std::int64_t maps = 0;        ///< maps that exist now
  std::int64_t most_maps = 0;   ///< largest value of `maps` so far
  std::int64_t opens = 0;       ///< successful calls of open(2)
  std::int64_t mmaps = 0;       ///< maps created
  std::int64_t refusals = 0;    ///< calls of open(2) and mmap(2) that failed because of a limit
};

/// Replaces zeros with the defaults, and rounds or reduces values that are not allowed.
MILLRACE_EXPORT open_file_limits filled_in(open_file_limits limits) noexcept;

}  // namespace millrace::loader
