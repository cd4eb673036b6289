// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "input/block_source.hpp"
#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Identifies a task: one of several runs that divide the same inputs among themselves.
struct task_id {
  std::int64_t index = 0;  ///< starts at 0
  std::int64_t of = 1;     ///< number of tasks
  bool operator==(const task_id&) const = default;
};

/// Largest number of tasks. With more tasks, output names would not sort in task order.
inline constexpr std::int64_t most_tasks = 99'999;

/// The part of the inputs that one task reads: the lines that begin after `begin` and at or before
/// `end`. Exception: if `begin` is the start of a file, the first line of that file belongs to this
/// task, not to the previous task. A task reads the rows `begin` to `end` - 1 of a table.
struct task_share {
  task_id id;
  text_place begin;
  text_place end;                ///< {number of inputs, 0} for the last task
  std::uint64_t disk_bytes = 0;  ///< approximate size on disk, for the progress bar
  /// Whether a line begins at `begin` and belongs to this task: at the start of a file, and at any
  /// row of a table.
  bool at_line = true;

  /// Returns whether the start of the input belongs to this task. If so, the task's .meta file
  /// lists the input, even if the input is empty.
  bool has_start_of(std::size_t input) const noexcept;
  /// Returns whether the whole input belongs to this task.
  bool has_all_of(std::size_t input) const noexcept {
    return has_start_of(input) && input < end.input;
  }
};

/// Cuts the inputs into tasks of about equal size on disk, and returns the share of one task. An
/// uncompressed file can be cut anywhere. A file of several gzip members or zstd frames can be cut
/// only between its members or frames, and a Parquet file between its row groups. Other files are
/// not cut. The result depends only on the inputs, the number of tasks and `largest_part_bytes`.
/// The shares of all tasks do not overlap and together cover all inputs.
///
/// @param largest_part_bytes  see read_limits::largest_part_bytes()
/// @pre 0 <= id.index < id.of <= most_tasks
/// @throws config_error  an input is a pipe or stdin, which tasks cannot share.
/// @throws io_error      an input cannot be read.
task_share share_of(std::span<const input_file> inputs, const task_id& id,
                    std::uint64_t largest_part_bytes);

/// The share of a run that is not split into tasks: all inputs.
task_share whole_share(std::span<const input_file> inputs);

/// The prefix of a task's outputs, such as PREFIX_00003-of-00016. merge_datasets merges datasets
/// with such names in task order.
std::filesystem::path task_prefix(std::filesystem::path prefix, const task_id& id);

/// Parses `--task`: `I/N` with 0 <= I < N, or `slurm`. For `slurm`, I and N come from the
/// environment variables that Slurm sets for an element of an array job, or for a process of a job.
///
/// @param variable  returns the value of an environment variable, or null; usually std::getenv
/// @throws config_error  the flag has neither form, or Slurm's variables are missing or invalid.
task_id task_of(std::string_view flag, const std::function<const char*(const char*)>& variable);

/// Returns the number of tasks that the processes of a job share: one per 32 MiB of the inputs on
/// disk, but at least 1 and at most 4096. The number depends only on the inputs, so a job with a
/// different number of processes resumes the same tasks.
///
/// There are usually many more tasks than processes. Each process does one task after another, so
/// all processes finish at about the same time. A task is large enough that its fixed cost, a few
/// fsync calls, does not matter.
std::int64_t task_count(std::span<const input_file> inputs);

}  // namespace millrace::preprocess
