// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <millrace/meta/dataset_meta.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "record/block_encoder.hpp"
#include "run/journal.hpp"
#include "run/run_options.hpp"

/// The identity of a run, so that another can resume it.
namespace millrace::preprocess {

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options);

/// The current stamps of the files. A pipe has an empty one.
///
/// @throws io_error  a regular file is missing, or stat fails.
std::vector<input_stamp> stamps_of(std::span<const input_file> inputs);

/// True if an input with stamp `now` is unchanged since it had `then`, without reading it.
bool is_unchanged(const input_stamp& then, const input_stamp& now, bool trust_inputs);

/// What a resuming run finds out about its inputs.
struct resumed_inputs {
  /// The current input of the journal's state was damaged when the run ended, and has changed
  /// since: read it again from its start.
  bool restart = false;
  /// Taken before any input was compared. An input that was trusted instead of compared keeps the
  /// change time in the journal.
  std::vector<input_stamp> stamps;
};

/// Checks that this run is the one in `journal`: the flags are equal, and the inputs still have the
/// text that was committed. Inputs with changed stamps are read as far as they were read then.
///
/// @param tell  gets a note before inputs are read, and one with the time that it took
/// @throws config_error  this run has other flags than the one in `journal`, or an input has
///                       changed, as far as it was read.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
resumed_inputs expect_same_run(const journal& journal, const run_identity& identity,
                               const run_options& options,
                               const std::function<void(const std::string&)>& tell);

/// Checks a finished run: its sidecars exist, and its inputs are unchanged. With
/// `options.trust_dates`, an input that was last modified and put in place (by its change time)
/// before P.meta was written is compared only by size; with `options.trust_inputs`, the
/// modification time is enough. Other inputs are read, as far as they were read then.
///
/// @param metas  one per prefix, from finished_outputs()
/// @param tell   gets a note before inputs are read, and one with the time that it took
/// @param if_stopped  state of the output, for the message of `stopped`
/// @throws config_error  an input has changed; or a sidecar that P.meta names is missing.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const formats::dataset_meta> metas, const run_options& options,
                        const std::function<void(const std::string&)>& tell,
                        const std::string& if_stopped = "nothing was written");

}  // namespace millrace::preprocess
