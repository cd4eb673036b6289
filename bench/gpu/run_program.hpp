// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::bench {

/// How a program ended.
struct program_end {
  int status = 0;        ///< exit status, or 128 + the signal that ended it
  bool cut_off = false;  ///< true if it was killed at its time limit
  double seconds = 0;
  /// standard output and standard error, in the order in which they were written
  std::string output;
};

namespace detail {

[[noreturn]] inline void become(const std::vector<std::string>& command,
                                const std::vector<std::string>& settings, int output) {
  (void)::setpgid(0, 0);
  (void)::dup2(output, STDOUT_FILENO);
  (void)::dup2(output, STDERR_FILENO);
  for (const std::string& setting : settings) (void)::putenv(const_cast<char*>(setting.c_str()));
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

inline bool has_output(int from, int milliseconds) {
  pollfd wanted = {from, POLLIN, 0};
  return ::poll(&wanted, 1, milliseconds) > 0;
}

// Waits up to `milliseconds` for output, and appends it to `output`. Returns false at the end of
// the output.
inline bool read_some(int from, int milliseconds, std::string& output) {
  if (!has_output(from, milliseconds)) return true;
  std::array<char, 4096> bytes{};
  const ssize_t count = ::read(from, bytes.data(), bytes.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  output.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace detail

/// Runs a program for at most `seconds`, then kills it. When the program has ended, also kills all
/// programs that it started and that still run.
///
/// @param settings  environment variables, NAME=VALUE
/// @throws io_error  the program cannot be started
inline program_end run_program(const std::vector<std::string>& command,
                               const std::vector<std::string>& settings, double seconds) {
  using clock = std::chrono::steady_clock;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw io_error(command[0], "pipe2", errno);
  const io::unique_fd output(ends[0]);
  io::unique_fd input(ends[1]);
  const auto begin = clock::now();
  const auto spent = [begin] {
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  const pid_t child = ::fork();
  if (child < 0) throw io_error(command[0], "fork", errno);
  if (child == 0) detail::become(command, settings, ends[1]);
  (void)::setpgid(child, child);  // the child calls this too: either may run first
  input.reset();

  program_end end;
  bool reading = true;
  siginfo_t ended{};
  while (ended.si_pid == 0) {
    if (reading) {
      reading = detail::read_some(output.get(), 50, end.output);
    } else {
      (void)::poll(nullptr, 0, 20);
    }
    if (spent() >= seconds && !end.cut_off) {
      end.cut_off = true;
      (void)::kill(-child, SIGKILL);
    }
    const auto id = static_cast<id_t>(child);
    if (::waitid(P_PID, id, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 && errno != EINTR) {
      throw io_error(command[0], "waitid", errno);
    }
  }
  end.seconds = spent();
  // Kill the programs that the child left running. Do this before waitpid(2), after which the
  // child's process id could be reused.
  (void)::kill(-child, SIGKILL);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw io_error(command[0], "waitpid", errno);
  while (reading && detail::has_output(output.get(), 0)) {
    reading = detail::read_some(output.get(), 0, end.output);
  }
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

/// Returns the folder of this program's executable file.
inline std::string folder_of_program() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) throw io_error("/proc/self/exe", "readlink", errno);
  const std::string whole(path.data(), static_cast<std::size_t>(size));
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace millrace::bench
