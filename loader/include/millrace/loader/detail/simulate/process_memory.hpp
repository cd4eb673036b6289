// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Memory of this process, in bytes. A number is 0 if the kernel does not report it.
struct process_memory {
  std::int64_t resident = 0;  ///< current size, including pages of mapped files
  std::int64_t peak = 0;      ///< largest value of `resident` so far
  std::int64_t own = 0;       ///< current size, excluding pages of files
};

MILLRACE_EXPORT process_memory memory_of_process();

/// The machine's physical memory, in bytes.
inline std::int64_t memory_of_machine() noexcept {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace millrace::loader
