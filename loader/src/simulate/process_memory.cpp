// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/simulate/process_memory.hpp>

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace millrace::loader {

MILLRACE_INLINE process_memory memory_of_process() {
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

}  // namespace millrace::loader
