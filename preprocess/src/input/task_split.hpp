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

/// More would not sort by name.
inline constexpr std::int64_t most_tasks = 99'999;

/// What one task reads: the lines that begin behind `begin`, or at it where that is the start of a
/// file, up to the one that begins at `end` or before, whole.
struct task_share {
  task_id id;
  text_place begin;
  text_place end;                ///< {number of inputs, 0} for the last task
  std::uint64_t disk_bytes = 0;  ///< about, for progress

  /// A line begins at `begin`, and is this task's.
  bool at_line() const noexcept { return begin.offset_bytes == 0; }
  /// The start of the input is this task's, so that it lists the input even if that is empty.
  bool has_start_of(std::size_t input) const noexcept;
  /// The end of the input is this task's, too.
  bool has_all_of(std::size_t input) const noexcept {
    return has_start_of(input) && input < end.input;
  }
};

/// Cuts the inputs into tasks of about equally many bytes on disk: within a plain file anywhere,
/// within an archive where its parts meet, and otherwise between files. A pure function of the
/// inputs and the number of tasks: the shares of all tasks are side by side and are all there is.
///
/// @param largest_part_bytes  as read_limits says
/// @pre 0 <= id.index < id.of <= most_tasks
/// @throws config_error  an input is a pipe or stdin, which tasks cannot share.
/// @throws io_error      an input cannot be read.
task_share share_of(std::span<const input_file> inputs, const task_id& id,
                    std::uint64_t largest_part_bytes);

/// The share of a run that has no tasks beside it.
task_share whole_share(std::span<const input_file> inputs);

/// PREFIX_00003-of-00016, whose parts merge_datasets puts into order.
std::filesystem::path task_prefix(std::filesystem::path prefix, const task_id& id);

}  // namespace millrace::preprocess
