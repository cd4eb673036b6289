// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include <millrace/error.hpp>

/// What every program does the same way: exit codes, the last line on stderr, `--version`.
namespace millrace::command {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_misuse = 2;

/// The command line itself is wrong. Ends the program with `exit_misuse` and a pointer to --help.
class usage_error : public error {
 public:
  using error::error;
};

/// Writes an answer to stdout.
///
/// @throws io_error  e.g. ENOSPC for a full disk behind a redirection, or a closed pipe.
inline void answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0) {
    throw io_error("stdout", "write", errno);
  }
}

/// The version line of a program.
inline void print_version(std::string_view program) {
  answer(fmt::format("{} (millrace) {}\n", program, MILLRACE_VERSION));
}

/// Runs the body of `main`, which returns an exit code, and turns what it throws into one
/// sentence on stderr and the code that belongs to it.
template <class Body>
int run_command(std::string_view program, Body&& body) noexcept {
  try {
    return body();
  } catch (const usage_error& e) {
    fmt::print(stderr, "{0}: {1}\nTry '{0} --help'.\n", program, e.what());
    return exit_misuse;
  } catch (const error& e) {
    fmt::print(stderr, "{}: {}\n", program, e.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "{}: out of memory\n", program);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", program, e.what());
  }
  return exit_failed;
}

}  // namespace millrace::command
