// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <memory>
#include <mutex>

#include <millrace/loader/detail/memory/home_process.hpp>

namespace millrace::loader {

/// Returns the T that the whole process shares. The T is created for its first user and destroyed
/// after its last user. Any thread may call this.
///
/// After fork(2) the child creates its own T. The parent's T remains in the child's memory
/// unchanged: its threads do not exist in the child, so its destructor would wait for them forever.
/// Another thread may be creating the T during the fork. Then fork(2) waits for it.
template <class T>
std::shared_ptr<T> one_per_process() {
  struct current {
    std::mutex mutex;
    std::weak_ptr<T> one;
    home_process home;

    // If registering fails for lack of memory, only a fork during the creation of a T can go wrong.
    current() {
      (void)::pthread_atfork([] { all().mutex.lock(); }, [] { all().mutex.unlock(); },
                             [] { all().mutex.unlock(); });
    }
    static current& all() {
      static current shared;
      return shared;
    }
  };
  current& shared = current::all();
  const std::lock_guard lock(shared.mutex);
  auto one = shared.home.is_here() ? shared.one.lock() : nullptr;
  if (!one) {
    one = share_at_home<T>();
    shared.one = one;
    shared.home = {};
  }
  return one;
}

}  // namespace millrace::loader
