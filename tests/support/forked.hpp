// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <functional>
#include <iostream>
#include <string>

namespace millrace::test {

/// Runs `act` in a forked child process. Returns the result of `act`. If `act` throws, returns
/// "threw " and the message of the exception. If the child runs for 20 seconds, returns "hung". If
/// a signal kills it, returns "killed by a signal". The child exits without running destructors of
/// this process.
inline std::string in_forked_child(const std::function<std::string()>& act) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    std::string said;
    try {
      said = act();
    } catch (const std::exception& e) {
      said = std::string("threw ") + e.what();
    }
    const bool written = ::write(ends[1], said.data(), said.size()) >= 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char part[512];
  for (::ssize_t got = 0; (got = ::read(ends[0], part, sizeof(part))) > 0;) {
    said.append(part, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? "hung" : "killed by a signal";
  return said;
}

}  // namespace millrace::test
