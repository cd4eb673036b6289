// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "input/block_source.hpp"
#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// One of several runs that share the inputs.
struct task_id {
  std::int64_t index = 0;  ///< from 0
  std::int64_t of = 1;
  bool operator==(const task_id&) const = default;
};

/// With more tasks, output names would not sort in task order.
inline constexpr std::int64_t most_tasks = 99'999;

/// What one task reads: the whole lines that begin after `begin` and not after `end`. A line at the
/// start of a file belongs to the task that begins there.
struct task_share {
  task_id id;
  text_place begin;
  text_place end;                ///< {number of inputs, 0} for the last task
  std::uint64_t disk_bytes = 0;  ///< approximate, for progress

  /// A line begins at `begin` and belongs to this task.
  bool at_line() const noexcept { return begin.offset_bytes == 0; }
  /// The start of the input belongs to this task, so it lists the input even if that is empty.
  bool has_start_of(std::size_t input) const noexcept;
  /// The whole input belongs to this task.
  bool has_all_of(std::size_t input) const noexcept {
    return has_start_of(input) && input < end.input;
  }
};

/// Cuts the inputs into tasks of about equal size on disk: anywhere in a plain file, between the
/// parts of an archive, and otherwise between files. A pure function of the inputs and the number
/// of tasks. The shares of all tasks do not overlap and cover all inputs.
///
/// @param largest_part_bytes  as read_limits says
/// @pre 0 <= id.index < id.of <= most_tasks
/// @throws config_error  an input is a pipe or stdin, which tasks cannot share.
/// @throws io_error      an input cannot be read.
task_share share_of(std::span<const input_file> inputs, const task_id& id,
                    std::uint64_t largest_part_bytes);

/// The share of a run that is not split into tasks: all inputs.
task_share whole_share(std::span<const input_file> inputs);

/// PREFIX_00003-of-00016. merge_datasets puts parts with such names in order.
std::filesystem::path task_prefix(std::filesystem::path prefix, const task_id& id);

}  // namespace millrace::preprocess
