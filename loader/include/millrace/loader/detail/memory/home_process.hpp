// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

/// Objects that own threads, and fork(2). A forked child has a copy of such an object, but not its
/// threads. Locks may be held and data half written there, for good. So nothing may be waited for,
/// joined or destroyed in the child: the copy stays in its memory, unused.
namespace millrace::loader {

/// Returns a number that a forked process does not share with its parent: how many forks lead to it
/// from the process that first called this function. Unlike getpid(2), it is not a system call.
MILLRACE_EXPORT unsigned forks_so_far() noexcept;

/// The process that made an object.
class home_process {
 public:
  /// False in a process forked from it.
  bool is_here() const noexcept { return forks_so_far() == forks_; }

  /// @param what  the object, e.g. "batch_loader"
  /// @throws error  this is another process
  void require_here(const char* what) const {
    if (is_here()) return;
    throw error("this " + std::string(what) + " was created by process " + std::to_string(id_) +
                ", and its threads do not exist in process " + std::to_string(::getpid()) +
                ", which was forked from it: create the loader after the fork, or start workers as "
                "new processes (in Python: multiprocessing's \"spawn\")");
  }

 private:
  ::pid_t id_ = ::getpid();  // for messages
  unsigned forks_ = forks_so_far();
};

/// Deletes an object in the process that made it, and nowhere else.
struct delete_at_home {
  home_process home = {};
  template <class T>
  void operator()(T* object) const noexcept {
    if (home.is_here()) delete object;
  }
};

template <class T>
using owned_at_home = std::unique_ptr<T, delete_at_home>;

template <class T, class... Arguments>
owned_at_home<T> make_at_home(Arguments&&... arguments) {
  return owned_at_home<T>(new T(std::forward<Arguments>(arguments)...));
}

/// Like std::make_shared.
template <class T, class... Arguments>
std::shared_ptr<T> share_at_home(Arguments&&... arguments) {
  return std::shared_ptr<T>(make_at_home<T>(std::forward<Arguments>(arguments)...));
}

}  // namespace millrace::loader
