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
#include "output/written_meta.hpp"
#include "record/block_encoder.hpp"
#include "report/summary.hpp"
#include "run/journal.hpp"
#include "run/run_options.hpp"

/// Functions that describe the outputs of a run, in P.meta and in the summary.
namespace millrace::preprocess {

/// The name of a policy in P.meta and in `--on-bad-record`.
const char* name_of(bad_record_policy policy);

/// Returns the contents of P.meta for one output.
///
/// @param key       index of the output's key
/// @param roots  of the sidecars; empty if the dataset is not finished yet
formats::dataset_meta meta_of(const tokenizer::tokenizer& tokenizer,
                              const encoder_options& encoding, const run_options& options,
                              const run_progress& state, std::size_t key,
                              const dataset_roots& roots);

/// Gives inputs that were not read their (empty) totals. If the run ended at `--max-tokens`, the
/// inputs after that place have none.
void pad_totals(run_progress& state, const run_options& options);

/// Returns the indices of the inputs that P.meta and P.src list. For a whole run, these are all
/// inputs; if it ended at `--max-tokens`, those of which it read anything, and all before them. For
/// a task, they are the inputs that it read or whose start is in its share.
std::vector<std::size_t> listed_inputs(const run_options& options, const run_progress& state);

/// The part of an input that a finished run read.
struct input_part {
  std::size_t input = 0;  ///< index in run_options::inputs
  formats::input_extent extent;
};

/// Returns the parts of inputs that `meta` lists. Returns nothing if the names of the listed
/// inputs, or their order, differ from this run's inputs.
std::optional<std::vector<input_part>> extents_of(const formats::dataset_meta& meta,
                                                  const run_options& options);

/// Returns P.meta of each output, if all outputs exist and were written with the settings and input
/// names of this run. Otherwise returns nothing.
///
/// @throws io_error      a P.meta cannot be read.
/// @throws config_error  settings and names match, but the task that wrote the outputs had a
///                       different share of the inputs.
std::optional<std::vector<formats::dataset_meta>> finished_outputs(
    std::span<const std::filesystem::path> prefixes, const tokenizer::tokenizer& tokenizer,
    const encoder_options& encoding, const run_options& options);

/// The summary of an earlier run, from the P.meta files of its outputs.
run_summary summary_of(const std::vector<formats::dataset_meta>& metas, const run_options& options,
                       std::span<const std::filesystem::path> prefixes);

/// The summary of a run that has just finished.
run_summary summary_of(const run_progress& state, const run_options& options,
                       const encoder_options& encoding,
                       std::span<const std::filesystem::path> prefixes);

}  // namespace millrace::preprocess
