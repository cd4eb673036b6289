// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/child_process.hpp"
#include "support/paths.hpp"

/// Runs programs of this build as a user would. Limits and signals can make the programs fail.
namespace millrace::test {

struct program_options {
  std::optional<::rlim_t> file_size;     ///< RLIMIT_FSIZE, bytes
  std::optional<::rlim_t> descriptors;   ///< RLIMIT_NOFILE, number of descriptors
  std::vector<std::string> environment;  ///< NAME=VALUE; overrides the variables of this process
  std::string stdout_path;     ///< file that receives stdout; empty: stdout is returned in `out`
  std::string stderr_path;     ///< file that receives stderr; empty: stderr is returned in `err`
  bool ordinary_user = false;  ///< drop root's privileges; if that fails, exit with `cannot_become`
  /// Signals that the program ignores, as with `nohup`. If HUP, INT, TERM or USR1 is not in this
  /// list, the signal has its default effect.
  std::vector<int> ignored_signals;
  bool closed_streams = false;  ///< close stdin, stdout and stderr, as some daemons do
};

/// Exit status if a program should run as an ordinary user but root's privileges cannot be dropped.
inline constexpr int cannot_become = 125;

struct program_result {
  int status = 0;  ///< exit status, or 128 + the signal that killed the program
  std::string out;
  std::string err;  ///< stderr, without progress lines
  /// Most memory of the program; at least that of the test when it started the program.
  std::uint64_t peak_rss_bytes = 0;
};

/// A running program, with /dev/null as its stdin. The destructor kills the program.
class running_program {
 public:
  explicit running_program(std::vector<std::string> arguments,
                           const program_options& options = {}) {
    const std::string out =
        options.stdout_path.empty() ? (folder_ / "out").string() : options.stdout_path;
    const std::string err =
        options.stderr_path.empty() ? (folder_ / "err").string() : options.stderr_path;
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::vector<std::string> added = options.environment;
    std::vector<char*> envp;
    envp.reserve(added.size());
    for (std::string& each : added) envp.push_back(each.data());
    for (char** each = ::environ; *each != nullptr; ++each) envp.push_back(*each);
    envp.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ > 0) return;
    // From here on, make only calls that are allowed in the forked child of a multithreaded
    // process.
    const bool ready = redirect(0, "/dev/null", O_RDONLY) &&
                       redirect(1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC) &&
                       redirect(2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC) &&
                       limit(RLIMIT_FSIZE, options.file_size) &&
                       limit(RLIMIT_NOFILE, options.descriptors);
    if (options.closed_streams) {
      for (const int fd : {0, 1, 2}) (void)::close(fd);
    }
    // Reset these signals, because this process may have been started with some of them ignored.
    for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) (void)::signal(signal, SIG_DFL);
    for (const int signal : options.ignored_signals) (void)::signal(signal, SIG_IGN);
    if (options.ordinary_user && !become_ordinary_user()) ::_exit(cannot_become);
    if (ready) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(126);
  }
  running_program(const running_program&) = delete;
  running_program& operator=(const running_program&) = delete;
  ~running_program() {
    kill();
    if (pid_ > 0) (void)::waitpid(pid_, nullptr, 0);
  }

  void kill() const noexcept { send(SIGKILL); }
  void send(int signal) const noexcept {
    if (pid_ > 0) (void)::kill(pid_, signal);
  }
  /// Returns whether the program has ended, without waiting for its end. wait() may still be called
  /// afterwards.
  bool ended() const noexcept {
    ::siginfo_t info{};
    return ::waitid(P_PID, static_cast<::id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }
  program_result wait() {
    int status = 0;
    struct ::rusage used {};
    while (::wait4(pid_, &status, 0, &used) < 0) {
      if (errno != EINTR) throw std::runtime_error("wait4 failed");
    }
    pid_ = -1;
    program_result result;
    result.peak_rss_bytes = static_cast<std::uint64_t>(used.ru_maxrss) << 10;
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (std::filesystem::exists(folder_ / "out")) result.out = read_text(folder_ / "out");
    if (std::filesystem::exists(folder_ / "err")) {
      result.err = without_progress(read_text(folder_ / "err"));
    }
    return result;
  }

 private:
  // Removes progress lines. A program prints one per second, so the number of these lines depends
  // on the speed of the machine.
  static std::string without_progress(const std::string& said) {
    std::string rest;
    for (std::size_t at = 0; at < said.size();) {
      const std::size_t end = std::min(said.find('\n', at), said.size() - 1) + 1;
      const std::string_view line(said.data() + at, end - at);
      if (!line.starts_with("Processed ")) rest += line;
      at = end;
    }
    return rest;
  }
  static bool redirect(int to, const char* path, int flags) {
    const int fd = ::open(path, flags, 0600);
    return fd >= 0 && ::dup2(fd, to) == to && (fd == to || ::close(fd) == 0);
  }
  static bool limit(decltype(RLIMIT_FSIZE) what, const std::optional<::rlim_t>& value) {
    if (!value) return true;
    const ::rlimit both{*value, *value};
    return ::setrlimit(what, &both) == 0;
  }

  temp_folder folder_;
  ::pid_t pid_ = -1;
};

inline program_result run_program(std::vector<std::string> arguments,
                                  const program_options& options = {}) {
  return running_program(std::move(arguments), options).wait();
}

}  // namespace millrace::test
