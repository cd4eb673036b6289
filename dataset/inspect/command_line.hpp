// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include <millrace/command/run_command.hpp>

#include "inspect.hpp"

namespace millrace::inspect {

/// The arguments after a verb (a subcommand of `inspect_dataset`): PREFIX, `--json`, and the verb's
/// own options.
struct command_line {
  std::filesystem::path prefix;
  bool json = false;
  boost::program_options::variables_map values;

  /// The option's value; nullopt if the option was not given.
  template <class T>
  std::optional<T> find(const char* option) const {
    const auto& value = values[option];
    return value.empty() ? std::nullopt : std::optional<T>(value.as<T>());
  }
};

/// Parses the arguments of a verb. If they contain `--help`, prints `help` and returns nullopt.
///
/// @param own   the verb's options, in addition to `--json` and `--help`
/// @param help  one screen; its first paragraph is the usage that is appended to errors
/// @throws usage_error   the arguments are invalid.
/// @throws config_error  as `suggest_dataset`
std::optional<command_line> parse(const arguments& args,
                                  const boost::program_options::options_description& own,
                                  const std::string& help);

/// Sets `line.prefix` to the one positional argument, as `parse` does.
///
/// @throws usage_error   there is no positional argument, or a second one.
/// @throws config_error  as `suggest_dataset`
void take_prefix(command_line& line, const std::string& help);

/// Like `parse`, for a verb that takes options but no PREFIX.
///
/// @throws usage_error  the options are invalid, or there is a positional argument.
std::optional<command_line> parse_options(const arguments& args,
                                          const boost::program_options::options_description& own,
                                          const std::string& help);

/// Like `parse`, for a verb that accepts its data as positional arguments or as options. The
/// positional arguments become the value `prefix`.
///
/// @throws usage_error  the arguments are invalid.
std::optional<command_line> parse_run_options(
    const arguments& args, const boost::program_options::options_description& own,
    const std::string& help);

/// Reports two common mistakes: a misspelled PREFIX, and the `--output-prefix` of `preprocess_data`
/// as PREFIX. The names of the datasets that `preprocess_data` writes are longer:
/// PREFIX_KEY_document.
/// @throws config_error  PREFIX.idx does not exist, but PREFIX_*.idx files or files with similar
///                       names do; the message names them
void suggest_dataset(const std::filesystem::path& prefix);

/// Returns an error about the command line, followed by the usage from `help`.
command::usage_error misuse(const std::string& what, const std::string& help);

}  // namespace millrace::inspect
