// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

/// Functions that read the resource use of this process from /proc/self.
namespace millrace::bench {

/// Returns the value called `name` in /proc/self/status: a count, or a size in kilobytes. Returns 0
/// if the value is missing.
inline long status_of(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
  }
  return 0;
}

/// Resident memory in kilobytes, without pages of files.
inline long own_kilobytes() {
  return status_of("VmRSS") - status_of("RssFile");
}

inline long descriptor_count() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<long>(std::distance(begin(all), end(all)));
}

/// Number of memory mappings of `.bin` files.
inline long map_count() {
  std::ifstream in("/proc/self/maps");
  long count = 0;
  for (std::string line; std::getline(in, line);) count += line.ends_with(".bin") ? 1 : 0;
  return count;
}

}  // namespace millrace::bench
