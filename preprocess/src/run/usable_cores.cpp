// SPDX-License-Identifier: Apache-2.0
#include "run/usable_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using limit = std::optional<double>;

limit lower(limit a, limit b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

limit quotient(double quota, double period) {
  if (!(quota > 0) || !(period > 0)) return std::nullopt;
  return quota / period;
}

// "200000 100000", or "max 100000" where there is no limit.
limit version_2_limit(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (file >> quota >> period) return quotient(quota, period);
  return std::nullopt;
}

// A quota of -1 is none.
limit version_1_limit(const fs::path& group) {
  double quota = 0;
  double period = 0;
  std::ifstream quota_file(group / "cpu.cfs_quota_us");
  std::ifstream period_file(group / "cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period) return quotient(quota, period);
  return std::nullopt;
}

// Over the group and all above it. In a container the path may be the host's, whose lower part is
// not there; then what is mounted as the root is the container's own group.
limit least_upwards(const fs::path& mount, std::string group, limit (*limit_of)(const fs::path&)) {
  limit least;
  while (true) {
    while (!group.empty() && group.back() == '/') group.pop_back();
    least = lower(least, limit_of(fs::path(mount.string() + group)));
    if (group.empty()) return least;
    group.erase(std::min(group.size(), group.rfind('/')));
  }
}

// A line of /proc/self/cgroup: "4:cpu,cpuacct:/group", and "0::/group" for version 2.
limit limit_of_line(const std::string& line, const fs::path& mounts) {
  const std::size_t first = line.find(':');
  if (first == line.npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string group = line.substr(second + 1);
  if (controllers.empty()) {
    // Beside version 1, version 2 has a folder of its own.
    return lower(least_upwards(mounts, group, version_2_limit),
                 least_upwards(mounts / "unified", group, version_2_limit));
  }
  bool of_cpu = false;
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');) of_cpu |= name == "cpu";
  if (!of_cpu) return std::nullopt;
  return lower(least_upwards(mounts / controllers, group, version_1_limit),
               least_upwards(mounts / "cpu", group, version_1_limit));
}

// The kernel refuses a mask that is too small for the processors that it could have.
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
  limit least;
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    least = lower(least, limit_of_line(line, root / "sys/fs/cgroup"));
  }
  return least;
}

int usable_cores(const fs::path& root) {
  const int cores = std::max(1, affinity_cores());
  const limit quota = control_group_cores(root);
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace millrace::preprocess
