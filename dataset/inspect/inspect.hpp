// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <millrace/command/grouped.hpp>
#include <millrace/command/text.hpp>

/// The verbs of `inspect_dataset`, one file per verb. A verb is called with the arguments after its
/// name. It parses them, calls a library, prints the answer, and returns the exit code of the
/// program.
///
/// @throws command::usage_error  the arguments are invalid.
/// @throws millrace::error       the question could not be answered.
namespace millrace::inspect {

inline constexpr const char* program_name = "inspect_dataset";

using arguments = std::vector<std::string>;
using command::counted;
using command::grouped;

/// The text of `inspect_dataset --help json`: the keys of `show --json`.
extern const char* const show_json_help;

int info(const arguments& args);
int verify(const arguments& args);
int show(const arguments& args);
int search(const arguments& args);
int stats(const arguments& args);
int diff(const arguments& args);
int plan(const arguments& args);
int report(const arguments& args);
int filter(const arguments& args);
int convert(const arguments& args);
int prepare_cache(const arguments& args);
int where(const arguments& args);
int audit(const arguments& args);
int simulate(const arguments& args);

}  // namespace millrace::inspect
