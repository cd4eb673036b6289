// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/meta/dataset_meta.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "output/dataset_writer.hpp"
#include "record/block_encoder.hpp"
#include "run/journal.hpp"
#include "run/run_options.hpp"
#include "watch/summary.hpp"

/// What a run reports about its outputs: P.meta and the summary.
namespace millrace::preprocess {

/// The name in P.meta and `--on-bad-record`.
const char* name_of(bad_record_policy policy);

/// P.meta of one output.
///
/// @param key       index of the output's key
/// @param sum_root  of P.sum in hexadecimal; empty without one
formats::dataset_meta meta_of(const tokenizer::tokenizer& tokenizer,
                              const encoder_options& encoding, const run_options& options,
                              const run_progress& state, std::size_t key,
                              const std::string& sum_root);

/// The numbers of the inputs in P.meta and P.src: all, or those that a task read or whose start it
/// has.
std::vector<std::size_t> listed_inputs(const run_options& options, const run_progress& state);

/// The part of an input that a finished run read.
struct input_part {
  std::size_t input = 0;  ///< in run_options::inputs
  formats::input_extent extent;
};

/// The parts that `meta` lists, if its inputs have the names of this run's inputs, in order.
/// Otherwise nothing.
std::optional<std::vector<input_part>> extents_of(const formats::dataset_meta& meta,
                                                  const run_options& options);

/// P.meta of each output, if all exist and were written with the same settings and input names.
/// Otherwise nothing.
/// @throws io_error      a P.meta cannot be read.
/// @throws config_error  these match, but the task had another share.
std::optional<std::vector<formats::dataset_meta>> finished_outputs(
    std::span<const std::filesystem::path> prefixes, const tokenizer::tokenizer& tokenizer,
    const encoder_options& encoding, const run_options& options);

/// P.meta of each output.
/// @throws io_error, format_error  one is missing or invalid.
std::vector<formats::dataset_meta> read_metas(std::span<const std::filesystem::path> prefixes);

/// The summary of an earlier run.
run_summary summary_of(const std::vector<formats::dataset_meta>& metas, const run_options& options,
                       std::span<const std::filesystem::path> prefixes);

/// The summary of a run that has just finished.
run_summary summary_of(const run_progress& state, const run_options& options,
                       const encoder_options& encoding,
                       std::span<const std::filesystem::path> prefixes);

}  // namespace millrace::preprocess
