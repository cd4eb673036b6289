// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "run/journal.hpp"

/// Functions that remove the files of a run that `--overwrite` replaces. The new run does not
/// always overwrite all of them: it can have other keys, other tasks or no tasks.
namespace millrace::preprocess {

/// Name of the entry that preprocess_data_mpi adds to a run_identity. Its value is the number of
/// tasks.
inline constexpr const char* tasks_entry = "tasks";

/// Removes the parts of all tasks, complete or not. Does nothing for a run of one process. Call
/// this while PREFIX.journal still describes the run, so that after a kill, the next call can find
/// the remaining parts.
///
/// @param run  the identity in the journal of the run
/// @throws config_error  another process is writing one of the parts.
/// @throws io_error      a part cannot be removed.
void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run);

/// Clears `journal`, which must be PREFIX.journal, and removes files that only the run in that
/// journal has: the parts of its tasks, and the partial files of datasets that are not in `kept`.
///
/// @param kept  prefixes of the datasets of the new run, whose writers truncate the partial files
/// @throws config_error, io_error  as remove_task_parts()
void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept);

}  // namespace millrace::preprocess
