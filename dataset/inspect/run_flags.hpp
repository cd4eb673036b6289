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
#include <millrace/loader/options.hpp>

#include "command_line.hpp"

/// The flags that describe a run: its data, order and ranks.
namespace millrace::inspect {

/// The lines about the most common of these flags, for the `--help` of a verb.
extern const char* const run_flags_help;

/// The text of `inspect_dataset --help run`: all of these flags.
extern const char* const all_run_flags_help;

void add_run_flags(boost::program_options::options_description& own);

struct run_configuration {
  std::shared_ptr<const dataset::run> order;
  dataset::sampler_options sampler;
  /// Requested number of positions: from `--train-samples` etc., or one epoch. The run may have
  /// more positions: Megatron's runs consist of whole epochs, and an `instant` run has no end.
  std::int64_t samples = 0;
  bool has_end = false;  ///< `samples` was given, or is the size of the whole part
  bool has_state = false;
  std::vector<dataset::edit> edits = {};  ///< edits of the state, if one was given
};

/// @param help  help text of the verb
/// @throws usage_error  a flag is missing or out of range
/// @throws config_error, io_error, format_error  as the constructors of the orders
run_configuration run_configuration_of(const command_line& line, const std::string& help);

/// The options of a loader of rank 0 that follow from the run flags; without the edits.
loader::loader_options loader_options_for(const run_configuration& run);

/// The values assumed for omitted flags, e.g. "--ranks 1, --micro-batch-size 1"; empty if no value
/// is assumed.
/// @param any_epoch  if true, the answer does not depend on the number of samples
std::string assumptions_of(const command_line& line, const run_configuration& run, bool any_epoch);

/// The value of `--blend-rounding` (default: `twice`).
/// @throws usage_error  the value is neither `twice` nor `fused`
dataset::blend_rounding rounding_of(const command_line& line, const std::string& help);

/// The value of `--reader`, the reader of a loader (default: `auto`).
/// @throws usage_error  there is no such reader
std::string reader_name_of(const command_line& line, const std::string& help);

/// The value of a flag, which must be at least `least`; nullopt if the flag was not given.
/// @throws usage_error  the value is below `least`
std::optional<std::int64_t> count_of(const command_line& line, const char* flag, std::int64_t least,
                                     const std::string& help);

}  // namespace millrace::inspect
