// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/home_process.hpp>

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE std::atomic<unsigned>& fork_counter() noexcept {
  static constinit std::atomic<unsigned> forks{0};
  return forks;
}

}  // namespace detail

MILLRACE_INLINE unsigned forks_so_far() noexcept {
  static const bool counts = ::pthread_atfork(nullptr, nullptr, [] {
                               detail::fork_counter().fetch_add(1, std::memory_order_relaxed);
                             }) == 0;
  // If registering failed for lack of memory, the process id works as well, but costs a system
  // call.
  if (!counts) return static_cast<unsigned>(::getpid());
  return detail::fork_counter().load(std::memory_order_relaxed);
}

}  // namespace millrace::loader
