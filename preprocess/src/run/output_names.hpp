// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "run/journal.hpp"
#include "run/run_options.hpp"

/// The datasets that a run writes, by name.
namespace millrace::preprocess {

/// PREFIX_KEY_document or PREFIX_KEY_sentence, one per key.
///
/// @throws config_error  a key cannot be part of a file name.
std::vector<std::filesystem::path> output_prefixes(const run_options& options);

/// The same for the run with identity `run`, under `output_prefix`.
std::vector<std::filesystem::path> output_prefixes(const std::filesystem::path& output_prefix,
                                                   const run_identity& run);

/// Every file that a task of a run writes, temporary or final.
///
/// @param options  of the whole run: its `output_prefix`, `keys` and `sentences` are used
std::vector<std::filesystem::path> files_of_task(const run_options& options, const task_id& task);

/// For plan_inputs(): refuses files of an earlier run with these names, which may be in a folder of
/// inputs.
///
/// @throws config_error  as refuse_inputs_among()
std::function<void(const std::filesystem::path&)> refusal_of_outputs(const run_options& options);

/// Checks the file of `--metrics`. Call it before the run starts, so that the run is not damaged or
/// left without metrics.
///
/// @param tasks  number of tasks, if this program divides the run into tasks
/// @throws config_error  its folder does not exist; or it is a folder, an input, or a file that the
///                       run or one of its tasks writes.
void expect_metrics_file(const std::filesystem::path& path, const run_options& options,
                         std::int64_t tasks = 0);

/// Refuses to overwrite datasets of an unfinished run with another prefix, which would resume with
/// them. The name of a dataset does not separate prefix and key: `o` with a_b and `o_a` with b both
/// give o_a_b_document. Call it before a run begins, while holding the journal of its own prefix.
///
/// @param prefixes  from output_prefixes()
/// @throws config_error  such a run has one of these datasets.
void refuse_datasets_of_others(const run_options& options,
                               std::span<const std::filesystem::path> prefixes);

}  // namespace millrace::preprocess
