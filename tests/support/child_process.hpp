// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

/// Processes of their own for what a test does to itself: limits, signals and lost rights.
namespace millrace::test {

/// What a child ends with if this machine does not allow the fault.
inline constexpr int cannot_try = 77;

/// Runs `f` in a process of its own, so that limits and signals end with it.
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

/// Its exit status, or 1000 + the signal that killed it.
inline int end_of(::pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline int in_child(const std::function<int()>& f) {
  return end_of(start_child(f));
}

/// From here on permissions hold for this process and for what it executes, root or not: root is
/// refused nothing only by its capabilities. Its files stay its own, so nothing need be given away.
/// Of use in a child only; system calls alone, as a child of a process with threads may make them.
///
/// @return whether it worked: root of some containers may not.
inline bool become_ordinary_user() noexcept {
  if (::geteuid() != 0) return true;
  for (const int right : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH}) {
    // Else execve would give it back.
    if (::prctl(PR_CAPBSET_READ, right, 0, 0, 0) == 1 &&
        ::prctl(PR_CAPBSET_DROP, right, 0, 0, 0) != 0)
      return false;
  }
  ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const ::__user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  return ::syscall(SYS_capset, &header, none) == 0;
}

}  // namespace millrace::test
