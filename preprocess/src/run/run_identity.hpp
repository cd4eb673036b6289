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

/// Functions that compare settings and inputs, to check whether a run may resume an earlier run.
namespace millrace::preprocess {

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options);

/// Returns the current stamps of the inputs. All fields of a pipe's stamp are zero.
///
/// @throws io_error  a regular file is missing, or stat fails.
std::vector<input_stamp> stamps_of(std::span<const input_file> inputs);

/// Compares the earlier and the current stamp of an input, and returns whether they show that the
/// input is unchanged. Does not read the input. With `trust_inputs`, change times may differ.
bool is_unchanged(const input_stamp& then, const input_stamp& now, bool trust_inputs);

/// What expect_same_run() finds out about the inputs.
struct resumed_inputs {
  /// True if the input at which the earlier run stopped was damaged, and has changed since. This
  /// run must read that input again from its start.
  bool restart = false;
  /// The stamps of the inputs, taken before any input was compared. If an input was not compared
  /// because of `--trust-inputs`, its stamp has the change time from the journal.
  std::vector<input_stamp> stamps;
};

/// Checks that this run may continue the run in `journal`: the flags are equal, and the inputs
/// still have the text that was committed. If the stamp of an input has changed, this function
/// reads the input again, up to the place that the earlier run reached.
///
/// @param tell  receives a note before inputs are read, and a note with the time that it took
/// @throws config_error  this run and the run in `journal` have different flags, or an input has
///                       changed in the part that was read.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
resumed_inputs expect_same_run(const journal& journal, const run_identity& identity,
                               const run_options& options,
                               const std::function<void(const std::string&)>& tell);

/// Checks that a finished run is still valid: its sidecars exist, and its inputs are unchanged.
/// Reads the inputs again, up to the place that the run reached, with two exceptions:
///
/// - With `options.trust_dates`, if an input's modification time and change time are older than
///   P.meta, only the size of the input is compared.
/// - If `options.trust_inputs` is also set, only the modification time must be older.
///
/// @param metas  one per prefix, from finished_outputs()
/// @param tell   receives a note before inputs are read, and a note with the time that it took
/// @param if_stopped  says what state the output is in; for the message of `stopped`
/// @throws config_error  an input has changed, or a sidecar that P.meta names is missing.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const formats::dataset_meta> metas, const run_options& options,
                        const std::function<void(const std::string&)>& tell,
                        const std::string& if_stopped = "nothing was written");

}  // namespace millrace::preprocess
