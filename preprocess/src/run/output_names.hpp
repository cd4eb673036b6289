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

/// PREFIX_KEY_document, or PREFIX_KEY_sentence; one a key.
///
/// @throws config_error  a key cannot be part of a file name.
std::vector<std::filesystem::path> output_prefixes(const run_options& options);

/// The same of the run that `run` tells of, under `output_prefix`.
std::vector<std::filesystem::path> output_prefixes(const std::filesystem::path& output_prefix,
                                                   const run_identity& run);

/// Every file that one of the tasks of a run writes, for a time or for good.
///
/// @param options  of the whole: its `output_prefix`, `keys` and `sentences`
std::vector<std::filesystem::path> files_of_task(const run_options& options, const task_id& task);

/// For plan_inputs(): refuses what an earlier run under these names wrote, which lies in a folder
/// of inputs perhaps.
///
/// @throws config_error  as refuse_inputs_among()
std::function<void(const std::filesystem::path&)> refusal_of_outputs(const run_options& options);

/// Of `--metrics`. Call it before anything starts: later there is a run that it would spoil, or one
/// without its metrics.
///
/// @param tasks  that `options` is cut into, if it is by this program
/// @throws config_error  its folder is not there, or it is a folder, an input, or a file that the
///                       run or one of its tasks writes.
void expect_metrics_file(const std::filesystem::path& path, const run_options& options,
                         std::int64_t tasks = 0);

/// The name of a dataset does not tell the prefix from the key: `o` with a_b, and `o_a` with b,
/// both give o_a_b_document. Call it before a run begins, holding the journal of its own prefix:
/// what an unfinished run under another prefix left must not be overwritten, for that would go on
/// with it.
///
/// @param prefixes  of output_prefixes()
/// @throws config_error  such a run has one of these datasets.
void refuse_datasets_of_others(const run_options& options,
                               std::span<const std::filesystem::path> prefixes);

}  // namespace millrace::preprocess
