// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "meta/dataset_meta.hpp"
#include "record/block_encoder.hpp"
#include "run/journal.hpp"
#include "run/run_options.hpp"

/// What a run is, for another to go on with it.
namespace millrace::preprocess {

run_identity identity_of(const tokenizer::tokenizer& tokenizer, const encoder_options& encoding,
                         const run_options& options);

std::vector<input_stamp> stamps_of(std::span<const input_file> inputs);

/// @param share        what of the inputs is this run's
/// @param largest_part_bytes  as read_limits says
/// @return whether the input that the journal's state is in was damaged then, and is another now:
///         whoever goes on has to begin with it anew
/// @throws config_error  this run was told something else than the one that `journal` is of, or an
///                       input is not the one that was read then, as far as it was read.
bool expect_same_run(const journal& journal, const run_identity& identity,
                     std::span<const input_file> inputs, const task_share& share,
                     std::uint64_t largest_part_bytes);

/// Holds a finished run against what it was made of and what it made. Inputs that were last
/// modified, or renamed, linked or copied to where they are, before P.meta was written are compared
/// by their size alone, if `trust_dates` and that date is not yet to come; others are read, up to
/// where they were then.
///
/// @param metas  one a prefix, as finished_outputs() gave them
/// @param tell   gets a note before much is read
/// @throws config_error  an input is not what it was; a sidecar that P.meta tells of is not there.
/// @throws io_error, format_error  an input cannot be read.
void expect_as_finished(std::span<const std::filesystem::path> prefixes,
                        std::span<const dataset_meta> metas, const run_options& options,
                        const std::function<void(const std::string&)>& tell);

}  // namespace millrace::preprocess
