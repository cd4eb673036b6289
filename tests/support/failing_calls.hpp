// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/run_program.hpp"
#include "support/sanitized.hpp"

/// Runs programs of this build while some of their system calls fail (fault/fail_kth.cpp).
namespace millrace::test {

/// Whether the library that makes calls fail can be preloaded into the programs of this build.
inline constexpr bool calls_can_fail = !under_thread_sanitizer;
inline constexpr const char* calls_cannot_fail =
    "NOT tested: ThreadSanitizer admits no library before its own";

struct failing_result {
  program_result result;
  bool struck = false;  ///< a call was struck by the fault
};

/// @param folder  calls on files under it count
/// @param plan    KIND:K:FAULT:once|on, as MILLRACE_FAIL_KTH
/// @param ending  only calls on files whose path ends so count
inline failing_result run_failing(const std::vector<std::string>& command,
                                  const std::filesystem::path& folder, const std::string& plan,
                                  const std::string& ending = "",
                                  std::vector<std::string> environment = {}) {
  // As fault/kth_call.hpp has it: calls of 32 kinds, how many were struck, the first of those.
  constexpr std::size_t struck_at = 32 * sizeof(std::uint64_t);
  constexpr std::size_t board_bytes = struck_at + sizeof(std::uint64_t) + 768;
  const temp_folder boards;
  const std::filesystem::path board = boards / "board";
  write_text(board, std::string(board_bytes, '\0'));
  const std::filesystem::path library = build_folder() / "tests/libfail_kth.so";
  for (const std::string& each :
       {"LD_PRELOAD=" + library.string(), "MILLRACE_FAIL_FOLDER=" + folder.string(),
        "MILLRACE_FAIL_BOARD=" + board.string(), "MILLRACE_FAIL_KTH=" + plan,
        "MILLRACE_FAIL_NAME=" + ending,
        std::string("ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0")}) {
    environment.push_back(each);
  }
  program_options options;
  options.environment = std::move(environment);
  failing_result failing{.result = run_program(command, options)};
  std::uint64_t struck = 0;
  std::memcpy(&struck, read_text(board).data() + struck_at, sizeof struck);
  failing.struck = struck != 0;
  return failing;
}

}  // namespace millrace::test
