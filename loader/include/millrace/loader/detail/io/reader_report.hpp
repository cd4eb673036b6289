// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/grant.hpp>

namespace millrace::loader {

/// Describes a reader: its back end, why it was chosen, and how much it has read.
struct reader_report {
  std::string asked;    ///< the requested back end: auto, mmap, pread, io_uring or cufile
  std::string granted;  ///< the back end in use; never auto
  std::string why;      ///< the reason for the choice; never empty
  std::vector<grant> grants;

  std::int64_t gathers = 0;
  std::int64_t requests = 0;
  std::uint64_t bytes = 0;           ///< bytes that callers requested
  std::uint64_t bytes_read = 0;      ///< bytes read from files; if unknown, equal to `bytes`
  std::int64_t retries = 0;          ///< number of retries after transient errors
  std::int64_t open_files = 0;       ///< files that all readers of the process have open now
  std::int64_t most_open_files = 0;  ///< largest value of `open_files` so far
  std::int64_t maps = 0;             ///< memory mappings of all readers of the process now
};

/// The whole report as one line, for a log.
MILLRACE_EXPORT std::string line(const reader_report& r);

}  // namespace millrace::loader
