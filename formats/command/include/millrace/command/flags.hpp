// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <boost/program_options/variables_map.hpp>

#include <millrace/command/run_command.hpp>

namespace millrace::command {

/// A flag that lacks its value takes the next flag for one; Boost lets it. A file whose name
/// starts with two dashes can still be given, as ./--name.
///
/// @throws usage_error  a value of `given` looks like a flag.
inline void refuse_flags_as_values(const boost::program_options::variables_map& given) {
  const auto refuse = [](const std::string& flag, const std::string& value) {
    if (!value.starts_with("--")) return;
    throw usage_error("--" + flag + " has no value: expected one before " + value);
  };
  for (const auto& [flag, value] : given) {
    if (const auto* text = boost::any_cast<std::string>(&value.value())) refuse(flag, *text);
    if (const auto* texts = boost::any_cast<std::vector<std::string>>(&value.value())) {
      for (const std::string& each : *texts) refuse(flag, each);
    }
  }
}

}  // namespace millrace::command
