// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include <millrace/command/run_command.hpp>

#include "inspect.hpp"

namespace millrace::inspect {

/// What follows a verb: PREFIX, `--json`, and the verb's own options.
struct command_line {
  std::filesystem::path prefix;
  bool json = false;
  boost::program_options::variables_map values;

  /// The option's value if it was given.
  template <class T>
  std::optional<T> find(const char* option) const {
    const auto& value = values[option];
    return value.empty() ? std::nullopt : std::optional<T>(value.as<T>());
  }
};

/// Parses the arguments of a verb. With `--help` among them, prints `help` and returns nothing.
///
/// @param own   the verb's options, beside `--json` and `--help`
/// @param help  one screen; its first paragraph is the usage that an error ends with
/// @throws usage_error   they do not fit.
/// @throws config_error  as suggest_dataset
std::optional<command_line> parse(const arguments& args,
                                  const boost::program_options::options_description& own,
                                  const std::string& help);

/// The same of a verb that takes no PREFIX: options alone.
///
/// @throws usage_error  they do not fit, or a word belongs to none of them.
std::optional<command_line> parse_options(const arguments& args,
                                          const boost::program_options::options_description& own,
                                          const std::string& help);

/// The same of a verb to which data may be told by words or by options: `prefix` holds the words.
///
/// @throws usage_error  they do not fit.
std::optional<command_line> parse_run_options(
    const arguments& args, const boost::program_options::options_description& own,
    const std::string& help);

/// Helps a user who gives the --output-prefix of preprocess_data as PREFIX: the names of its
/// datasets are longer, PREFIX_KEY_document.
/// @throws config_error  there is no PREFIX.idx, but PREFIX_*.idx; the message names them
void suggest_dataset(const std::filesystem::path& prefix);

/// An error about the command line, with the usage out of `help` behind it.
command::usage_error misuse(const std::string& what, const std::string& help);

}  // namespace millrace::inspect
