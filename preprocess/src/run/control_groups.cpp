// SPDX-License-Identifier: Apache-2.0
#include "run/control_groups.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using limit = std::optional<double>;

limit lower(limit a, limit b) {
  if (!a) return b;
  return b ? std::min(*a, *b) : a;
}

// Returns the smallest limit of the group and of all groups above it. In a container, `group` can
// be a path on the host, and its lower folders do not exist in the container. Then the mounted root
// is the container's own group.
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

// Returns the limit of a line of /proc/self/cgroup, such as "4:cpu,cpuacct:/group" for version 1 or
// "0::/group" for version 2.
limit limit_of_line(const control_group_limit& which, const std::string& line,
                    const fs::path& mounts) {
  const std::size_t first = line.find(':');
  if (first == line.npos) return std::nullopt;
  const std::size_t second = line.find(':', first + 1);
  if (second == line.npos) return std::nullopt;
  const std::string controllers = line.substr(first + 1, second - first - 1);
  const std::string group = line.substr(second + 1);
  if (controllers.empty()) {
    // If version 1 is mounted too, version 2 is mounted in its own folder.
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

}  // namespace millrace::preprocess
