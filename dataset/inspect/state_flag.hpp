// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/dataset/state.hpp>

#include "command_line.hpp"
#include "run_flags.hpp"

/// The flag `--state`, which gives a state of the run. The state's edits and schedule are applied.
namespace millrace::inspect {

/// A state, and the file that it was read from.
struct given_state {
  std::filesystem::path path;
  dataset::run_state state;
};

/// Reads a state.
/// @throws io_error, format_error  the file cannot be read, or is not a state
given_state read_state(const std::filesystem::path& path);

/// The lines of `--help` about `--state`.
extern const char* const state_flag_help;

void add_state_flag(boost::program_options::options_description& own);

/// @return nullopt if `--state` was not given, or if the verb does not have this flag
/// @throws io_error, format_error  as `read_state`
std::optional<given_state> given_state_of(const command_line& line);

/// Checks that the state matches the run that the flags describe, and returns the state's edits.
/// Does not check whether files have changed. A state without "data" was written by a person to try
/// edits. From such a state, only the options that it contains are compared with the run.
///
/// @param order  description of the order that the flags select
/// @param of     the run that the flags describe
/// @throws config_error  the state and the run differ, or the sampler does not support edits
std::vector<dataset::edit> edits_of(const given_state& given, dataset::run_state order,
                                    const run_configuration& of);

}  // namespace millrace::inspect
