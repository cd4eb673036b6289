// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "fault/kth_board.hpp"
#include "support/paths.hpp"
#include "support/run_program.hpp"
#include "support/sanitized.hpp"

/// Runs programs of this build while some of their system calls fail (fault/fail_kth.cpp).
namespace millrace::test {

/// True if the library that makes calls fail can be preloaded into the programs of this build.
/// ThreadSanitizer does not allow this.
inline constexpr bool calls_can_fail = !under_thread_sanitizer;
inline constexpr const char* calls_cannot_fail =
    "NOT tested: ThreadSanitizer admits no library before its own";

struct failing_result {
  program_result result;
  bool struck = false;  ///< whether at least one call failed as planned
};

/// Runs a command, and makes the calls that `plan` selects fail.
/// @param folder  only calls on files in this folder are counted
/// @param plan    KIND:K:FAULT:once|on, as in `MILLRACE_FAIL_KTH`
/// @param ending  only calls on files whose path ends with this text are counted
inline failing_result run_failing(const std::vector<std::string>& command,
                                  const std::filesystem::path& folder, const std::string& plan,
                                  const std::string& ending = "",
                                  std::vector<std::string> environment = {}) {
  const temp_folder own;
  const std::filesystem::path board_file = own / "board";
  write_text(board_file, std::string(sizeof(board), '\0'));
  // The dynamic loader splits LD_PRELOAD at spaces and colons. The path of the build may contain
  // these characters, so copy the library to another folder.
  const std::filesystem::path library = own / "libfail_kth.so";
  std::filesystem::copy_file(build_folder() / "tests/libfail_kth.so", library);
  for (const std::string& each :
       {"LD_PRELOAD=" + library.string(), "MILLRACE_FAIL_FOLDER=" + folder.string(),
        "MILLRACE_FAIL_BOARD=" + board_file.string(), "MILLRACE_FAIL_KTH=" + plan,
        "MILLRACE_FAIL_NAME=" + ending,
        std::string("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0")}) {
    environment.push_back(each);
  }
  program_options options;
  options.environment = std::move(environment);
  failing_result failing{.result = run_program(command, options)};
  std::uint64_t struck = 0;
  std::memcpy(&struck, read_text(board_file).data() + offsetof(board, fired), sizeof struck);
  failing.struck = struck != 0;
  return failing;
}

}  // namespace millrace::test
