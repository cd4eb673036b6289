// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace millrace::loader {

/// Memory of this process, in bytes; 0 where the kernel does not tell.
struct process_memory {
  std::int64_t resident = 0;  ///< now, pages of mapped files included
  std::int64_t peak = 0;      ///< the most that it was
  std::int64_t own = 0;       ///< now, without pages of files
};

inline process_memory memory_of_process() {
  process_memory memory;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t kib = 0;
    words >> name >> kib;
    if (name == "VmRSS:") memory.resident = kib * 1024;
    if (name == "VmHWM:") memory.peak = kib * 1024;
    if (name == "RssAnon:") memory.own = kib * 1024;
  }
  return memory;
}

/// Memory of the machine, in bytes.
inline std::int64_t memory_of_machine() noexcept {
  return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
}

}  // namespace millrace::loader
