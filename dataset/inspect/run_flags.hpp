// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>

#include "command_line.hpp"

/// The flags by which verbs are told a run: its data, its order, its ranks.
namespace millrace::inspect {

/// The lines of `--help` about them.
extern const char* const run_flags_help;

void add_run_flags(boost::program_options::options_description& own);

struct run_configuration {
  std::shared_ptr<const dataset::run> order;
  dataset::sampler_options sampler;
  /// Positions that are asked for: what --train-samples says, or one epoch. The run may have more:
  /// Megatron's has whole epochs, and an instant one has no end of its own.
  std::int64_t samples = 0;
  bool has_end = false;  ///< `samples` was given, or is all that the part has
  bool has_state = false;
  std::vector<dataset::edit> edits = {};  ///< of the state, if one was given
};

/// @param help  of the verb
/// @throws usage_error  a flag is missing or out of range
/// @throws config_error, io_error, format_error  as the orders
run_configuration run_configuration_of(const command_line& line, const std::string& help);

/// What the run takes for flags that were left out, e.g. "--ranks 1, --micro-batch-size 1"; empty:
/// nothing.
/// @param any_epoch  the number of samples does not matter to the answer
std::string assumptions_of(const command_line& line, const run_configuration& run, bool any_epoch);

/// Refuses datasets whose `.meta` files name different tokenizers, as the loader does: an id of one
/// is a different text in the other. Datasets without a `.meta` are accepted.
///
/// @throws config_error  two tokenizers; the message names a dataset of each
/// @throws io_error, format_error  a `.meta` cannot be read
void check_tokenizers(const dataset::run& order);

/// --blend-rounding; twice without it.
/// @throws usage_error  it is neither
dataset::blend_rounding rounding_of(const command_line& line, const std::string& help);

/// The value of a flag that must be `least` or more, if it is given.
/// @throws usage_error  it is less
std::optional<std::int64_t> count_of(const command_line& line, const char* flag, std::int64_t least,
                                     const std::string& help);

}  // namespace millrace::inspect
