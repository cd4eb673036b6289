// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/dataset/run/instant_run.hpp>
#include <millrace/dataset/run/megatron_run.hpp>
#include <millrace/dataset/run/packed_run.hpp>
#include <millrace/dataset/run/topology.hpp>

#include "command_line.hpp"

/// The flags by which verbs are told a run: its data, its order, its ranks.
namespace millrace::inspect {

/// The lines of `--help` about them.
extern const char* const run_flags_help;

void add_run_flags(boost::program_options::options_description& own);

/// How positions are dealt to ranks.
enum class run_sampler { single, cyclic, full_validation };

/// As a state names it.
const char* name(run_sampler sampler) noexcept;

struct run_configuration {
  std::variant<dataset::megatron_run, dataset::instant_run, dataset::packed_run> order;
  dataset::topology ranks;
  std::optional<dataset::rampup_batch> rampup;
  run_sampler sampler = run_sampler::single;  ///< the others have an end
  bool data_sharding = true;
  /// Positions of the run: those asked for of its part, or one epoch where none are.
  std::int64_t samples = 0;
  bool has_end = true;  ///< they were asked for
  bool has_state = false;
  std::vector<dataset::edit> edits = {};  ///< of the state, if one was given
};

/// @param help  of the verb
/// @throws usage_error  a flag is missing or out of range
/// @throws config_error, io_error, format_error  as the orders
run_configuration run_configuration_of(const command_line& line, const std::string& help);

/// --blend-rounding; twice without it.
/// @throws usage_error  it is neither
dataset::blend_rounding rounding_of(const command_line& line, const std::string& help);

/// The value of a flag that must be `least` or more, if it is given.
/// @throws usage_error  it is less
std::optional<std::int64_t> count_of(const command_line& line, const char* flag, std::int64_t least,
                                     const std::string& help);

}  // namespace millrace::inspect
