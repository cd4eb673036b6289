// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/dataset/diff.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"

/// The parts of `inspect_dataset diff`.
namespace millrace::inspect {

extern const std::string diff_help;

/// Compares two runs, given by their flags: those of `line`, and these with the flags `changes`.
/// @return an exit code
int diff_runs(const command_line& line, const arguments& before, const arguments& changes,
              const dataset::diff_options& options);

/// Compares two states, and the runs that they belong to if their data is there.
/// @return an exit code
int diff_states(const std::string& path_a, const std::string& path_b, bool as_json,
                const dataset::diff_options& options);

/// Adds all flags of `diff`.
void add_diff_flags(boost::program_options::options_description& own);

/// Where and what the first difference of two datasets is: "document 3, token 5 (sequence 3, ...)".
std::string first_text(const dataset::first_difference& at);

/// "3 to 5, 8 and 12 more ranges"; the ranges are the first of `all`.
std::string ranges_text(const std::vector<dataset::position_range>& ranges, std::int64_t all);

}  // namespace millrace::inspect
