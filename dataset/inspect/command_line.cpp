// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/command/nearest_name.hpp>
#include <millrace/command/parse_flags.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

/// Parses all arguments. If they contain `--help`, prints the help and returns nullopt.
std::optional<command_line> parse_all(const arguments& args, const po::options_description& own,
                                      const std::string& help) {
  command_line result;
  po::options_description options;
  options.add(own);
  auto add = options.add_options();
  add("json", po::bool_switch(&result.json));
  add("help,h", po::bool_switch());
  add("prefix", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("prefix", -1);
  try {
    result.values = command::parse_flags(args, options, positions);
  } catch (const command::usage_error& e) {
    throw misuse(e.what(), help);
  }
  if (result.values["help"].as<bool>()) {
    command::answer(help);
    return std::nullopt;
  }
  return result;
}

}  // namespace

std::optional<command_line> parse(const arguments& args, const po::options_description& own,
                                  const std::string& help) {
  auto result = parse_all(args, own, help);
  if (result) take_prefix(*result, help);
  return result;
}

void take_prefix(command_line& line, const std::string& help) {
  const auto prefixes = line.find<std::vector<std::string>>("prefix");
  if (!prefixes) {
    throw misuse("PREFIX is required: the path of the dataset, without .bin and .idx", help);
  }
  if (prefixes->size() > 1) {
    throw misuse("expected one PREFIX, found a second: " + (*prefixes)[1], help);
  }
  line.prefix = prefixes->front();
  suggest_dataset(line.prefix);
}

void suggest_dataset(const std::filesystem::path& prefix) {
  std::error_code ignored;
  auto idx = prefix;
  if (std::filesystem::exists(idx += ".idx", ignored)) return;
  const std::string name = prefix.filename().string();
  std::vector<std::string> found;
  std::vector<std::string> similar;
  for (std::filesystem::directory_iterator each(io::parent_folder(prefix), ignored), end;
       !ignored && each != end; each.increment(ignored)) {
    const auto& path = each->path();
    if (path.extension() != ".idx") continue;
    const std::string other = path.stem().string();
    const std::string whole = (prefix.parent_path() / path.stem()).string();
    if (other.starts_with(name + "_")) {
      found.push_back(whole);
    } else if (3 * command::edit_distance(name, other) <= other.size()) {
      similar.push_back(whole);
    }
  }
  if (found.empty()) found = std::move(similar);
  if (found.empty()) return;
  std::ranges::sort(found);
  constexpr std::size_t most_names = 4;
  if (const std::size_t count = found.size(); count > most_names) {
    found.resize(most_names);
    found.push_back("another of " + std::to_string(count) + " datasets");
  }
  std::string names;
  for (std::size_t i = 0; i < found.size(); ++i) {
    names += (i == 0 ? "" : i + 1 == found.size() ? " or " : ", ") + found[i];
  }
  throw config_error("there is no " + idx.string() + "; did you mean " + names + "?");
}

std::optional<command_line> parse_options(const arguments& args, const po::options_description& own,
                                          const std::string& help) {
  auto result = parse_all(args, own, help);
  if (!result) return result;
  const auto words = result->find<std::vector<std::string>>("prefix");
  if (words) throw misuse("'" + words->front() + "' belongs to no flag", help);
  return result;
}

std::optional<command_line> parse_run_options(const arguments& args,
                                              const po::options_description& own,
                                              const std::string& help) {
  return parse_all(args, own, help);
}

command::usage_error misuse(const std::string& what, const std::string& help) {
  const std::string start = "usage: " + std::string(program_name) + ' ';
  const std::size_t verb = help.starts_with(start) ? start.size() : help.size();
  return command::usage_error(what, help.substr(0, help.find("\n\n")),
                              help.substr(verb, help.find(' ', verb) - verb));
}

}  // namespace millrace::inspect
