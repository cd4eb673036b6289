// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>

#include "run/journal.hpp"

/// What a run leaves that `--overwrite` gives up, under names that the run in its place need not
/// have: that one may have other keys, or other tasks or none.
namespace millrace::preprocess {

/// The entry of a run_identity that preprocess_data_mpi adds: into how many tasks it cut the
/// inputs.
inline constexpr const char* tasks_entry = "tasks";

/// Removes the parts of all tasks, whole or begun. Nothing where the run was that of one process.
/// Call it while PREFIX.journal still tells of the run, so that a kill leaves what finds the rest.
///
/// @param run  what its journal says
/// @throws config_error  another process writes one of the parts.
/// @throws io_error      one cannot be removed.
void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run);

/// Clears `journal`, that of PREFIX, and removes what only the run that it told of has: the parts
/// of its tasks, and the partial files of datasets that are not in `kept`.
///
/// @param kept  datasets that are written now: whoever writes them empties their partial files
/// @throws config_error, io_error  as remove_task_parts()
void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept);

}  // namespace millrace::preprocess
