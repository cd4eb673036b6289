// SPDX-License-Identifier: Apache-2.0
#include "run/abandoned_run.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include <millrace/io/file_ops.hpp>

#include "input/task_split.hpp"
#include "output/output_check.hpp"
#include "output/partition_files.hpp"
#include "process/fault_point.hpp"
#include "run/output_names.hpp"

namespace millrace::preprocess {
namespace {

std::int64_t tasks_of(const run_identity& run) {
  const auto entry = std::ranges::find(run, tasks_entry, &run_identity::value_type::first);
  std::int64_t tasks = 0;  // 0: a single process wrote the whole datasets
  if (entry != run.end()) {
    const std::string& value = entry->second;
    std::from_chars(value.data(), value.data() + value.size(), tasks);
  }
  return tasks;
}

bool any_is_there(std::span<const std::filesystem::path> files) {
  return std::ranges::any_of(
      files, [](const auto& path) { return io::is_there(path, io::links::are_not_followed); });
}

}  // namespace

void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run) {
  const std::int64_t tasks = tasks_of(run);
  for (std::int64_t task = 0; task < tasks; ++task) {
    fault_point("parts");
    const auto prefix = task_prefix(output_prefix, {task, tasks});
    const auto files = files_of_run(prefix, output_prefixes(prefix, run));
    if (!any_is_there(files)) continue;
    // Opening the journal takes the lock of the part, and throws if another process is writing the
    // part. The journal is cleared before the files are removed, because a saved state must not
    // outlive its files.
    journal part(prefix, journal::start::afresh);
    part.clear();
    for (const auto& path : files) {
      if (path != part.path()) io::remove_if_exists(path);
    }
    part.remove();
  }
}

void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept) {
  const auto run = journal::identity_in(journal.path());
  if (run) remove_task_parts(output_prefix, *run);
  journal.clear();  // cleared first, because a state must not outlive its files
  if (!run) return;
  for (const auto& dataset : output_prefixes(output_prefix, *run)) {
    if (std::ranges::find(kept, dataset) != kept.end()) continue;
    for (const auto& path : files_of_run(output_prefix, std::span(&dataset, 1))) {
      if (path.extension() == ".partial") io::remove_if_exists(path);
    }
    remove_part_files(dataset);
  }
}

}  // namespace millrace::preprocess
