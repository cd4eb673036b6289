// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>

/// What every program does the same way: exit codes, the last line on stderr, `--version`.
namespace millrace::command {

inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_misuse = 2;

/// The command line itself is wrong. Ends the program with `exit_misuse` and a pointer to --help.
class usage_error : public error {
 public:
  /// @param usage  the shape of a right command line, where the program's own does not fit
  explicit usage_error(const std::string& what, std::string usage = {})
      : error(what), usage_(std::move(usage)) {}
  const std::string& usage() const noexcept { return usage_; }

 private:
  std::string usage_;
};

/// Writes an answer to stdout.
///
/// @throws io_error  e.g. ENOSPC for a full disk behind a redirection, or a closed pipe.
inline void answer(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw io_error("stdout", "write", errno);
  }
}

/// Tells a person something, on stderr. What cannot be told there (it is closed, or a full disk) is
/// lost: that must not end the work, nor change how it ends.
inline void tell(std::string_view text) noexcept {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

/// What `--version` prints: the version, and the optional parts that this build has.
inline void print_version(std::string_view program, std::string_view optional_parts = "none") {
  answer(fmt::format("{} (millrace) {}\noptional parts: {}\n", program, MILLRACE_VERSION,
                     optional_parts));
}

namespace detail {

/// Makes what the kernel would kill for an error like any other, and sees to it that no file of
/// ours gets the number of a standard stream that is closed: what is told there would be in it.
inline void prepare_process() noexcept {
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a write beyond RLIMIT_FSIZE fails with EFBIG
  (void)std::signal(SIGPIPE, SIG_IGN);  // a write that nobody reads fails with EPIPE
  for (const int fd : {0, 1, 2}) {
    // The lowest free number is the one that is closed, for those below it are open by now. Of
    // stdout, what is said must fail, not vanish: so it is open, but for the other direction.
    if (::fcntl(fd, F_GETFD) == -1) (void)::open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace detail

/// Runs the body of `main`, which returns an exit code, and turns what it throws into one
/// sentence on stderr and the code that belongs to it.
///
/// @param usage  the shape of a right command line, told to who typed a wrong one
template <class Body>
int run_command(std::string_view program, std::string_view usage, Body&& body) noexcept {
  detail::prepare_process();
  try {
    return body();
  } catch (const usage_error& e) {
    tell(fmt::format("{0}: {1}\n{2}\nTry '{0} --help'.\n", program, one_line(e.what()),
                     e.usage().empty() ? usage : e.usage()));
    return exit_misuse;
  } catch (const std::bad_alloc&) {
    tell(program);
    tell(": out of memory\n");
  } catch (const std::exception& e) {
    tell(fmt::format("{}: {}\n", program, one_line(e.what())));
  }
  return exit_failed;
}

}  // namespace millrace::command
