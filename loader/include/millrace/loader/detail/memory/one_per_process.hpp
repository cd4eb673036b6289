// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>

namespace millrace::loader {

/// The T that the whole process shares; it lives as long as it has users. Any thread may call this.
///
/// After fork(2) the child creates its own T. The parent's T remains in the child's memory
/// unchanged: its threads do not exist in the child, so its destructor would wait for them forever.
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
