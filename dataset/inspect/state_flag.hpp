// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/dataset/state.hpp>

#include "command_line.hpp"
#include "run_flags.hpp"

/// --state: a state of the run, whose edits and schedule are followed.
namespace millrace::inspect {

/// A state, and the file it was read from.
struct given_state {
  std::filesystem::path path;
  dataset::run_state state;
};

/// The lines of `--help` about it.
extern const char* const state_flag_help;

void add_state_flag(boost::program_options::options_description& own);

/// @return nothing where --state was not given, or the verb does not know it
/// @throws io_error, format_error, config_error  the file cannot be read, or is no state
std::optional<given_state> given_state_of(const command_line& line);

/// The edits of a state that is of the run that the flags say: where they differ it is refused.
/// Whether files are still the same ones is not looked at. A state without "data" is one that
/// somebody has written to try edits, and is held to what it says of the order alone.
///
/// @param order  what a state says of the order of the flags
/// @param of     the run of the flags
/// @throws config_error  they differ, or the sampler does not follow edits
std::vector<dataset::edit> edits_of(const given_state& given, dataset::run_state order,
                                    const run_configuration& of);

}  // namespace millrace::inspect
