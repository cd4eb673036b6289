// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

/// Runs code in child processes. Tests use child processes for changes that would otherwise affect
/// the test itself: limits, signals and dropped privileges.
namespace millrace::test {

/// Exit status of a child that cannot cause the fault on this machine.
inline constexpr int cannot_try = 77;

/// Runs `f` in a child process, so that its limits and signals affect only the child.
inline ::pid_t start_child(const std::function<int()>& f) {
  const ::pid_t child = ::fork();
  if (child != 0) return child;
  int result = 99;
  try {
    result = f();
  } catch (...) {
  }
  ::_exit(result);
}

/// Waits for a child. Returns its exit status, or 1000 + the signal that killed it.
inline int end_of(::pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline int in_child(const std::function<int()>& f) {
  return end_of(start_child(f));
}

/// Makes file permissions apply to this process and to the programs that it executes, even if the
/// process runs as root. The function drops only the capabilities that override permissions. The
/// user id does not change, so root's files stay accessible. Call this function only in a child
/// process. A forked child of a multithreaded process may call it, because it only makes system
/// calls.
///
/// @return whether the function succeeded; some containers do not allow root to drop capabilities
inline bool become_ordinary_user() noexcept {
  if (::geteuid() != 0) return true;
  for (const int right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    // Without this call, execve would restore the capability.
    if (::prctl(PR_CAPBSET_READ, right, 0, 0, 0) == 1 &&
        ::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0)
      return false;
  }
  ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const ::__user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

}  // namespace millrace::test
