// SPDX-License-Identifier: Apache-2.0
#include "run/usable_cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <thread>
#include <vector>

#include "run/control_groups.hpp"

namespace millrace::preprocess {
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

// A quota of -1 means no limit.
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

}  // namespace millrace::preprocess
