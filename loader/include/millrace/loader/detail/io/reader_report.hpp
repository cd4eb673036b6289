// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/grant.hpp>

namespace millrace::loader {

/// What a reader does and why, and what it has done.
struct reader_report {
  std::string asked;    ///< the back end asked for: auto, mmap, pread, io_uring, cufile
  std::string granted;  ///< the one that reads: never auto
  std::string why;      ///< the reason of the choice; never empty
  std::vector<grant> grants;

  std::int64_t gathers = 0;
  std::int64_t requests = 0;
  std::uint64_t bytes = 0;           ///< that requests asked for
  std::uint64_t bytes_read = 0;      ///< read from files, if known; else equal to `bytes`
  std::int64_t retries = 0;          ///< reads repeated after a transient error
  std::int64_t open_files = 0;       ///< of the process, at present
  std::int64_t most_open_files = 0;  ///< of the process
  std::int64_t maps = 0;             ///< of the process, at present
};

/// All of it as one line, for a log.
MILLRACE_EXPORT std::string line(const reader_report& r);

}  // namespace millrace::loader
