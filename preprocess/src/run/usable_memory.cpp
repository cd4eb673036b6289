// SPDX-License-Identifier: Apache-2.0
#include "run/usable_memory.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include "input/zstd_window.hpp"
#include "run/control_groups.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;

std::optional<double> number_in(const fs::path& path) {
  std::ifstream file(path);
  double bytes = 0;
  if (file >> bytes && bytes > 0) return bytes;  // fails for "max"
  return std::nullopt;
}

std::optional<double> version_1_bytes(const fs::path& group) {
  return number_in(group / "memory.limit_in_bytes");
}
std::optional<double> version_2_bytes(const fs::path& group) {
  return number_in(group / "memory.max");
}

std::optional<double> machine_memory(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string word; file >> word;) {
    double kibibytes = 0;
    if (word == "MemTotal:" && file >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> usable_memory(const fs::path& root) {
  const auto machine = machine_memory(root);
  const auto groups = least_limit({"memory", version_1_bytes, version_2_bytes}, root);
  if (!machine && !groups) return std::nullopt;
  constexpr double no_limit = 0x1p62;  // without a limit, version 1 writes about 2^63
  const double least = std::min(machine.value_or(no_limit), groups.value_or(no_limit));
  return static_cast<std::uint64_t>(std::min(least, no_limit));
}

std::uint64_t default_zstd_window_bytes(int processes, const fs::path& root) {
  const auto memory = usable_memory(root);
  if (!memory) return most_zstd_window_bytes;
  const std::uint64_t share = *memory / 4 * 3 / static_cast<std::uint64_t>(std::max(1, processes));
  return std::clamp(share, least_zstd_window_bytes, most_zstd_window_bytes);
}

}  // namespace millrace::preprocess
