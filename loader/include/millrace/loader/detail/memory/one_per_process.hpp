// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>

namespace millrace::loader {

/// The T that all of this process share; it lives as long as somebody holds it. Any thread.
///
/// After fork(2) the child makes one of its own. The parent's, whose threads the child does not
/// have, stays in the child's memory as it was: to end it would be to wait for them.
template <class T>
std::shared_ptr<T> one_per_process() {
  struct current {
    std::mutex mutex;
    std::weak_ptr<T> one;
    ::pid_t process = 0;
  };
  static current shared;
  const std::lock_guard lock(shared.mutex);
  const ::pid_t self = ::getpid();
  auto one = shared.process == self ? shared.one.lock() : nullptr;
  if (!one) {
    one = std::shared_ptr<T>(new T, [self](T* made) {
      if (::getpid() == self) delete made;  // NOLINT: as std::default_delete
    });
    shared.one = one;
    shared.process = self;
  }
  return one;
}

}  // namespace millrace::loader
