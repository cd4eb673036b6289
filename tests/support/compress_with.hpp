// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.hpp"
#include "support/run_program.hpp"

namespace millrace::test {

/// Compresses a text with a program, e.g. `compress_with({"xz", "-6"}, text)`. Passes `-c` and a
/// file name to the program as its last arguments.
///
/// @throws std::runtime_error  the program fails or is not installed (scripts/setup --dev installs
///         it).
inline std::string compress_with(const std::vector<std::string>& program, std::string_view text) {
  const temp_folder folder;
  write_text(folder / "text", text);
  std::vector<std::string> arguments = {"/usr/bin/env"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  arguments.insert(arguments.end(), {"-c", (folder / "text").string()});
  const program_result result = run_program(arguments);
  if (result.status != 0) throw std::runtime_error(program.front() + ": " + result.err);
  return result.out;
}

}  // namespace millrace::test
