// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/home_process.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace millrace::loader {

MILLRACE_INLINE unsigned forks_so_far() noexcept {
  static constinit std::atomic<unsigned> forks{0};
  static const bool counts = ::pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0;
  // If registering failed for lack of memory, the process id works as well, but costs a system
  // call.
  return counts ? forks.load(std::memory_order_relaxed) : static_cast<unsigned>(::getpid());
}

}  // namespace millrace::loader
