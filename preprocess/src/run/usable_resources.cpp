// SPDX-License-Identifier: Apache-2.0
#include "run/usable_resources.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/zstd_frames.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using limit = std::optional<double>;

limit lower(limit a, limit b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

// Returns the smallest limit of the group and of all groups above it. In a container, `group` can
// be a path on the host that does not exist in the container. The root of the mount is then the
// container's own group.
limit least_upwards(const fs::path& mount, std::string group,
                    control_group_limit::reader limit_of) {
  limit least;
  while (true) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    least = lower(least, limit_of(fs::path(mount.string() + group)));
    if (group.empty()) return least;
    group.erase(std::min(group.size(), group.rfind('/')));
  }
}

// Returns the limit of the control group that a line of /proc/self/cgroup names. Such a line is
// "4:cpu,cpuacct:/group" in version 1 and "0::/group" in version 2.
limit limit_of_line(const control_group_limit& which, const std::string& line,
                    const fs::path& mounts) {
  const std::size_t first = line.find(':');
  if (first == line.npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string group = line.substr(second + 1);
  if (controllers.empty()) {
    // If version 1 of control groups is mounted as well, version 2 is in the folder `unified`. A
    // folder that does not exist sets no limit.
    return lower(least_upwards(mounts, group, which.version_2),
                 least_upwards(mounts / "unified", group, which.version_2));
  }
  bool has_it = false;
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) has_it |= name == which.controller;
  if (!has_it) return std::nullopt;
  return lower(least_upwards(mounts / controllers, group, which.version_1),
               least_upwards(mounts / which.controller, group, which.version_1));
}

}  // namespace

std::optional<double> least_limit(const control_group_limit& which, const fs::path& root) {
  limit least;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    least = lower(least, limit_of_line(which, line, root / "sys/fs/cgroup"));
  }
  return least;
}

namespace {

namespace fs = std::filesystem;
using limit = std::optional<double>;

limit quotient(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

// Reads `cpu.max`: "200000 100000", or "max 100000" if there is no limit.
limit version_2_cores(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (file >> quota >> period) return quotient(quota, period);
  return std::nullopt;
}

// Reads the quota and the period of a group. A quota of -1 means that there is no limit.
limit version_1_cores(const fs::path& group) {
  double quota = 0;
  double period = 0;
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period) return quotient(quota, period);
  return std::nullopt;
}

// Returns the number of processors in the affinity mask. Tries larger and larger masks, because the
// kernel rejects a mask that is too small for its maximum number of processors.
int affinity_cores() {
  for (std::size_t sets = 1; sets <= 64; sets *= 2) {
    std::vector<::cpu_set_t> mask(sets);
    const std::size_t bytes = sets * sizeof(::cpu_set_t);
    if (::sched_getaffinity(0, bytes, mask.data()) == 0) return CPU_COUNT_S(bytes, mask.data());
    if (errno != EINVAL) break;
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

std::optional<double> control_group_cores(const fs::path& root) {
  return least_limit({"cpu", version_1_cores, version_2_cores}, root);
}

int usable_cores(const fs::path& root) {
  const int cores = std::max(1, affinity_cores());
  const limit quota = control_group_cores(root);
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

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
