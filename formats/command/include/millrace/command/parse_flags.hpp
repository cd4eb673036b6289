// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <typeinfo>
#include <vector>

#include <boost/program_options.hpp>

#include <millrace/command/nearest_name.hpp>
#include <millrace/command/run_command.hpp>

namespace millrace::command {

namespace detail {

namespace po = boost::program_options;

/// The flag as the help shows it, e.g. `--workers N`.
inline std::string shown_flag(const po::options_description& flags, const std::string& name) {
  const po::option_description* flag = flags.find_nothrow(name, false);
  const bool takes_value = flag != nullptr && flag->semantic()->max_tokens() > 0;
  return "--" + name + (takes_value ? ' ' + flag->semantic()->name() : "");
}

[[noreturn]] inline void refuse_unknown(const po::options_description& flags,
                                        const std::string& typed) {
  std::vector<std::string> names;
  for (const auto& flag : flags.options()) names.push_back(flag->long_name());
  const std::string_view flag = std::string_view(typed).substr(0, typed.find('='));
  const std::string_view bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::string_view nearest = nearest_name(bare, names);
  throw usage_error("there is no flag " + std::string(flag) +
                    (nearest.empty() ? "" : "; did you mean --" + std::string(nearest) + "?"));
}

[[noreturn]] inline void refuse_syntax(const po::options_description& flags,
                                       const po::invalid_command_line_syntax& problem) {
  using kind = po::invalid_command_line_syntax::kind_t;
  std::string name = problem.get_option_name();
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  switch (problem.kind()) {
    case kind::extra_parameter:
      throw usage_error("--" + name + " takes no value");
    case kind::missing_parameter:
    case kind::empty_adjacent_parameter:
      throw usage_error("--" + name + " has no value: expected " + shown_flag(flags, name));
    default:
      throw usage_error(problem.what());
  }
}

/// Refuses a flag whose value is the next flag. Boost would accept such a value. To pass a value
/// that starts with two dashes, the user can write `--flag=--value`.
inline void refuse_flags_as_values(const po::option& option) {
  const bool first_is_in_flag = option.original_tokens.size() == option.value.size();
  for (std::size_t i = first_is_in_flag ? 1 : 0; i < option.value.size(); ++i) {
    const std::string& value = option.value[i];
    if (!value.starts_with("--")) continue;
    throw usage_error("--" + option.string_key + " has no value: expected one before " + value);
  }
}

/// Throws an error that says what is expected. Boost's message only says that the value "is
/// invalid".
[[noreturn]] inline void refuse_value(const po::options_description& flags,
                                      const po::option& option) {
  const std::string value = option.value.empty() ? "" : option.value.front();
  std::string sentence = "--" + option.string_key + ' ' + value + ": ";
  const bool digits =
      !value.empty() && value.find_first_not_of("0123456789", value[0] == '-') == value.npos;
  const auto& semantic = *flags.find(option.string_key, false).semantic();
  const auto* typed = dynamic_cast<const po::typed_value_base*>(&semantic);
  if (typed == nullptr || typed->value_type() == typeid(std::string)) {
    throw usage_error(sentence + "this value cannot be read");
  }
  throw usage_error(sentence + (digits ? "the number is too large" : "expected a whole number"));
}

}  // namespace detail

/// Parses a command line. Every error has our own message instead of Boost's. Flags cannot be
/// abbreviated. Otherwise, adding a flag could change the meaning of an abbreviation in an existing
/// script.
///
/// @param words      the command line, without the program's name
/// @param flags      all flags of the program
/// @param positions  the flags that receive words without a flag; by default, such words are
///                   refused
/// @throws usage_error  a flag is unknown, lacks its value, has a value but takes none, has a value
///                      of the wrong type, or is given twice; or a word belongs to no flag.
inline boost::program_options::variables_map parse_flags(
    const std::vector<std::string>& words, const boost::program_options::options_description& flags,
    const boost::program_options::positional_options_description& positions = {}) {
  namespace po = boost::program_options;
  po::variables_map given;
  try {
    po::command_line_parser parser(words);
    parser.options(flags).style(po::command_line_style::unix_style &
                                ~po::command_line_style::allow_guessing);
    if (positions.max_total_count() > 0) parser.positional(positions);
    const po::parsed_options parsed = parser.run();
    std::string last;  // the previous flag
    for (const po::option& option : parsed.options) {
      if (option.position_key < 0) {
        detail::refuse_flags_as_values(option);
        last = option.string_key;
      } else if (option.string_key.empty()) {
        throw usage_error("'" + (option.value.empty() ? "" : option.value.front()) +
                          "' belongs to no flag" +
                          (last.empty() ? "" : ": --" + last + " takes no more values"));
      }
    }
    for (const po::option& option : parsed.options) {
      try {
        po::parsed_options one(&flags);
        one.options.push_back(option);
        po::variables_map alone;
        po::store(one, alone);
      } catch (const po::validation_error&) {
        detail::refuse_value(flags, option);
      }
    }
    po::store(parsed, given);
    po::notify(given);
  } catch (const po::unknown_option& e) {
    detail::refuse_unknown(flags, e.get_option_name());
  } catch (const po::invalid_command_line_syntax& e) {
    detail::refuse_syntax(flags, e);
  } catch (const po::multiple_occurrences& e) {
    throw usage_error(e.get_option_name() + " is given twice; give it once");
  } catch (const po::error& e) {
    throw usage_error(e.what());
  }
  return given;
}

/// Like the function above, for the arguments of main().
inline boost::program_options::variables_map parse_flags(
    int argc, const char* const* argv, const boost::program_options::options_description& flags) {
  // argc is 0 if the process was started without even a program name.
  return parse_flags(
      argc > 1 ? std::vector<std::string>(argv + 1, argv + argc) : std::vector<std::string>(),
      flags);
}

}  // namespace millrace::command
