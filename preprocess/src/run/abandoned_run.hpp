// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "run/journal.hpp"

/// Files of a run that `--overwrite` abandons, under names that the new run may not have: it may
/// have other keys, other tasks or no tasks.
namespace millrace::preprocess {

/// The entry that preprocess_data_mpi adds to a run_identity: its number of tasks.
inline constexpr const char* tasks_entry = "tasks";

/// Removes the parts of all tasks, complete or not. Does nothing for a run of one process. Call it
/// while PREFIX.journal still describes the run, so that after a kill the rest can be found.
///
/// @param run  identity in its journal
/// @throws config_error  another process writes one of the parts.
/// @throws io_error      a part cannot be removed.
void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run);

/// Clears `journal`, which is that of PREFIX, and removes files that only its run has: the parts of
/// its tasks, and the partial files of datasets that are not in `kept`.
///
/// @param kept  datasets that are written now; their writers empty their partial files
/// @throws config_error, io_error  as remove_task_parts()
void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept);

}  // namespace millrace::preprocess
