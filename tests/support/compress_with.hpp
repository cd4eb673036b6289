// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.hpp"
#include "support/run_program.hpp"

namespace millrace::test {

/// What a program makes of a text: compress_with({"xz", "-6"}, text). It is given `-c` and a file.
///
/// @throws std::runtime_error  it failed, or is not installed (scripts/setup --dev installs them).
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
