// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Limits on what readers may use. 0 selects a default derived from the limits of the process.
struct open_file_limits {
  /// Number of descriptors, including those of mapped files and of direct reads. 0: half of
  /// RLIMIT_NOFILE, from 4 to 8,192.
  std::int64_t files = 0;
  /// Number of memory mappings (maps), at most 3/4 of `files`, because each map holds a descriptor.
  /// 0: 4,096. Reduced once the kernel or the file system refuses a map.
  std::int64_t maps = 0;
  /// Total size of the mapped parts of files, in bytes. Touched bytes cost 1/512 of their size in
  /// page tables. 0: 16 times the memory of the machine.
  std::uint64_t mapped_bytes = 0;
  /// Size of one map in bytes, a multiple of 2 MiB; longer files get several. 0: 64 GiB.
  std::uint64_t map_bytes = 0;
};

/// Counts over all files of a table.
struct open_file_usage {
  std::int64_t files = 0;
  std::int64_t most_files = 0;
  std::int64_t maps = 0;
  std::int64_t most_maps = 0;
  std::int64_t opens = 0;     ///< successful calls of open(2)
  std::int64_t mmaps = 0;     ///< maps created
  std::int64_t refusals = 0;  ///< opens and maps that failed because of a limit
};

/// Replaces zeros by defaults and reduces values that exceed what the other values allow.
MILLRACE_EXPORT open_file_limits filled_in(open_file_limits limits) noexcept;

}  // namespace millrace::loader
