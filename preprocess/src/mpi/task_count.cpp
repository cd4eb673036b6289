// SPDX-License-Identifier: Apache-2.0
#include "mpi/task_count.hpp"

#include <algorithm>

namespace millrace::preprocess {
namespace {
constexpr std::uint64_t task_bytes = std::uint64_t{32} << 20;
constexpr std::uint64_t most_tasks = 4096;
}  // namespace

std::int64_t task_count(std::span<const input_file> inputs) {
  std::uint64_t total = 0;
  for (const input_file& file : inputs) total += file.size_bytes;
  return static_cast<std::int64_t>(std::clamp<std::uint64_t>(total / task_bytes, 1, most_tasks));
}

}  // namespace millrace::preprocess
