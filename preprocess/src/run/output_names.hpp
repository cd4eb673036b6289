// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "run/journal.hpp"
#include "run/run_options.hpp"

/// The names of the datasets that a run writes.
namespace millrace::preprocess {

/// Returns the prefixes PREFIX_KEY_document or PREFIX_KEY_sentence, one per key.
///
/// @throws config_error  a key cannot be part of a file name.
std::vector<std::filesystem::path> output_prefixes(const run_options& options);

/// Returns the prefixes of the datasets that the run with identity `run` writes if its output
/// prefix is `output_prefix`.
std::vector<std::filesystem::path> output_prefixes(const std::filesystem::path& output_prefix,
                                                   const run_identity& run);

/// Lists every file that a task of a run writes, temporary or final.
///
/// @param options  options of the whole run; only `output_prefix`, `keys` and `sentences` are used
std::vector<std::filesystem::path> files_of_task(const run_options& options, const task_id& task);

/// Returns a function for plan_inputs() that refuses inputs that are outputs of this run. An
/// earlier run may have left such files in a folder of inputs. The returned function throws
/// config_error, as refuse_inputs_among() does.
std::function<void(const std::filesystem::path&)> refusal_of_outputs(const run_options& options);

/// Checks that `path`, the file of `--metrics`, is suitable. Call this before the run starts.
/// Otherwise, metrics could overwrite the run's files, or be lost because the file cannot be
/// written.
///
/// @param tasks  number of tasks, if this program divides the run into tasks
/// @throws config_error  the folder of `path` does not exist, or `path` is a folder, an input, or a
///                       file that the run or one of its tasks writes.
void expect_metrics_file(const std::filesystem::path& path, const run_options& options,
                         std::int64_t tasks = 0);

/// Refuses to overwrite datasets of an unfinished run that has another output prefix, because that
/// run would later resume with the overwritten files. Two prefixes can give the same dataset name:
/// prefix `o` with key `a_b` and prefix `o_a` with key `b` both give `o_a_b_document`. Call this
/// before a run begins, while you hold the journal of its own prefix.
///
/// @param prefixes  from output_prefixes()
/// @throws config_error  an unfinished run with another prefix has one of these datasets.
void refuse_datasets_of_others(const run_options& options,
                               std::span<const std::filesystem::path> prefixes);

/// These functions remove the files of a run that `--overwrite` replaces. The new run may have
/// other keys, other tasks or no tasks, so it does not always overwrite all old files.

/// A run that drops duplicates first writes datasets with all documents, in a folder beside its
/// output. Returns their prefixes.
///
/// @param prefixes  from output_prefixes()
std::vector<std::filesystem::path> prefixes_of_all(const std::filesystem::path& output_prefix,
                                                   std::span<const std::filesystem::path> prefixes);

/// Creates that folder, empty and durable.
///
/// @throws io_error  it cannot be created, or an old one cannot be removed; also in the next one.
void make_folder_of_all(const std::filesystem::path& output_prefix);

/// Removes that folder with all that is in it. Does nothing if there is none.
void remove_folder_of_all(const std::filesystem::path& output_prefix);

/// Name of the entry that preprocess_data_mpi adds to a run_identity. Its value is the number of
/// tasks.
inline constexpr const char* tasks_entry = "tasks";

/// Removes the parts of all tasks, complete or not. Does nothing
/// if a single process did the run. Call this while PREFIX.journal still describes the run. Then,
/// if the process is killed, the next call can still find the remaining parts.
///
/// @param run  the identity in the journal of the run
/// @throws config_error  another process is writing one of the parts.
/// @throws io_error      a part cannot be removed.
void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run);

/// Clears `journal`, which must be PREFIX.journal, and removes files of the run in that journal:
/// the parts of its tasks, and the partial files of its datasets that are not in `kept`.
///
/// @param kept  prefixes of the datasets of the new run, whose writers truncate the partial files
/// @throws config_error, io_error  as remove_task_parts()
void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept);

}  // namespace millrace::preprocess
