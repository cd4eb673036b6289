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

/// Functions that check whether a run may resume another: they compare settings and inputs.
namespace millrace::preprocess {

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options);

/// Returns the current stamps of the inputs. All fields of a pipe's stamp are zero.
///
/// @throws io_error  a regular file is missing, or stat fails.
std::vector<input_stamp> stamps_of(std::span<const input_file> inputs);

/// Returns whether the stamps show that an input is unchanged. `then` is the earlier stamp, `now`
/// the current one. Does not read the input. With `trust_inputs`, change times may differ.
bool is_unchanged(const input_stamp& then, const input_stamp& now, bool trust_inputs);

/// What a resumed run finds out about its inputs.
struct resumed_inputs {
  /// True if the current input of the journal's state was damaged when the run ended, and has
  /// changed since. The run must read that input again from its start.
  bool restart = false;
  /// The stamps of the inputs, taken before any input was compared. If an input was not compared
  /// because of `--trust-inputs`, its stamp has the change time from the journal.
  std::vector<input_stamp> stamps;
};

/// Checks that this run may continue the run in `journal`: the flags are equal, and the inputs
/// still have the text that was committed. Inputs whose stamps have changed are read again, up to
/// the place that the earlier run reached.
///
/// @param tell  receives a note before inputs are read, and a note with the time that it took
/// @throws config_error  this run has other flags than the run in `journal`, or an input has
///                       changed in the part that was read.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
resumed_inputs expect_same_run(const journal& journal, const run_identity& identity,
                               const run_options& options,
                               const std::function<void(const std::string&)>& tell);

/// Checks that a finished run is still valid: its sidecars exist, and its inputs are unchanged.
/// Reads the inputs again, up to the place that the run reached, with two exceptions:
///
/// - With `options.trust_dates`, only the size of an input is compared if its modification time and
///   its change time are older than P.meta.
/// - With `options.trust_inputs` too, the modification time alone must be older.
///
/// @param metas  one per prefix, from finished_outputs()
/// @param tell   receives a note before inputs are read, and a note with the time that it took
/// @param if_stopped  the state of the output, for the message of `stopped`
/// @throws config_error  an input has changed; or a sidecar that P.meta names is missing.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const formats::dataset_meta> metas, const run_options& options,
                        const std::function<void(const std::string&)>& tell,
                        const std::string& if_stopped = "nothing was written");

}  // namespace millrace::preprocess
