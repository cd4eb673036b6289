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

/// What a run is, for another to go on with it.
namespace millrace::preprocess {

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options);

/// The stamps of the files as they are now. A pipe has an empty one.
///
/// @throws io_error  a regular file is gone, or the kernel does not report on it.
std::vector<input_stamp> stamps_of(std::span<const input_file> inputs);

/// Whether an input with stamp `now` needs no reading to know that it is the one that had `then`.
bool is_unchanged(const input_stamp& then, const input_stamp& now, bool trust_inputs);

/// What a run that resumes finds out about its inputs.
struct resumed_inputs {
  /// The input that the journal's state is in was damaged when the run ended, and is another file
  /// now: read it again from its start.
  bool restart = false;
  /// Taken before any input was compared. An input that was trusted, not compared, keeps the change
  /// time that the journal has.
  std::vector<input_stamp> stamps;
};

/// Checks that this run is the one of `journal`: equal flags, and inputs that still have the text
/// that was committed. Inputs whose stamps changed are read as far as they were read then.
///
/// @param tell  gets a note before inputs are read, and one with the time that it took
/// @throws config_error  this run has other flags than the one of `journal`, or an input is not the
///                       one that was read then, as far as it was read.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
resumed_inputs expect_same_run(const journal& journal, const run_identity& identity,
                               const run_options& options,
                               const std::function<void(const std::string&)>& tell);

/// Checks a finished run: its sidecars are there, and its inputs are what they were. With
/// `options.trust_dates`, an input that was last modified, and put in its place (its change time),
/// before P.meta was written is compared by its size alone; with `options.trust_inputs` the
/// modification time is enough. Other inputs are read, up to where they were read then.
///
/// @param metas  one per prefix, as finished_outputs() gave them
/// @param tell   gets a note before inputs are read, and one with the time that it took
/// @param if_stopped  what became of the output, for the message of `stopped`
/// @throws config_error  an input is not what it was; a sidecar that P.meta names is missing.
/// @throws stopped       `options.stop` was set.
/// @throws io_error, format_error  an input cannot be read.
void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const formats::dataset_meta> metas, const run_options& options,
                        const std::function<void(const std::string&)>& tell,
                        const std::string& if_stopped = "nothing was written");

}  // namespace millrace::preprocess
