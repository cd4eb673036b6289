// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

/// Protects objects that own threads from fork(2). A forked child has a copy of such an object, but
/// not its threads. In the copy, locks may stay held forever, and data may stay half written. So
/// the child must not wait for anything in the copy, join its threads or destroy it. The copy stays
/// in the child's memory, unused.
namespace millrace::loader {

/// Returns a number that a forked process does not share with its parent. It counts the forks from
/// the process that first called this function to the calling process. Unlike getpid(2), this
/// function makes no system call.
MILLRACE_EXPORT unsigned forks_so_far() noexcept;

/// Remembers the process that created an object.
class home_process {
 public:
  /// False in a process that was forked from the creating process.
  bool is_here() const noexcept { return forks_so_far() == forks_; }

  /// @param what  the object, e.g. "batch_loader"
  /// @throws error  the calling process did not create the object
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

/// Deletes an object, but only in the process that created it.
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

/// Like std::make_shared, but a forked process does not delete the object.
template <class T, class... Arguments>
std::shared_ptr<T> share_at_home(Arguments&&... arguments) {
  return std::shared_ptr<T>(make_at_home<T>(std::forward<Arguments>(arguments)...));
}

}  // namespace millrace::loader
