// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
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
/// @throws config_error  this run was told something else than the one that `journal` is of, or an
///                       input is not the one that was read then, as far as it was read.
void expect_same_run(const journal& journal, const run_identity& identity,
                     std::span<const input_file> inputs, const task_share& share,
                     std::uint64_t largest_part_bytes);

/// @param meta     of a dataset that was made of `inputs`, or of a share of them
/// @param changed  inputs that may be others than they were then
/// @throws config_error  what the dataset has of one of these is not what it was.
void expect_same_text(const dataset_meta& meta, std::span<const input_file> inputs,
                      std::span<const std::size_t> changed, std::uint64_t largest_part_bytes);

}  // namespace millrace::preprocess
