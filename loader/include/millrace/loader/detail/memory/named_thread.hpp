// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <concepts>
#include <exception>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/grant.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>

namespace millrace::loader {

/// Name and placement of a thread.
struct thread_setup {
  /// The name that `ps -L`, `top -H` and debuggers show; the kernel keeps only the first 15 bytes.
  /// Names of millrace threads begin with "mr-".
  std::string name = {};
  std::vector<int> cpus = {};  ///< allowed CPUs, ascending; empty: those of the parent thread
  int node = -1;               ///< preferred NUMA node of its memory; -1: system default
};

/// Sets the name and placement of the calling thread for the rest of its life. If the system
/// refuses one of them, that is not an error.
///
/// @return one row per requested property; the name has no row
MILLRACE_EXPORT std::vector<grant> set_up_this_thread(const thread_setup& setup);

/// A thread whose name and placement are set before `run` is called. As with std::jthread, the
/// destructor asks the thread to stop and joins it. An exception that leaves the thread's function
/// ends the process. The thread does not block SIGBUS, so that it can read memory maps
/// (millrace/dataset/detail/lost_pages.hpp). In a forked process, the destructor does nothing.
class named_thread {
 public:
  named_thread() = default;

  /// Returns once the name and placement of the thread are set.
  ///
  /// @param run  called once; may take a std::stop_token
  /// @throws std::system_error, std::bad_alloc  the thread cannot be started, or memory for its
  ///                                            setup is lacking; `run` is then not called
  template <class Run>
  requires std::invocable<Run&> || std::invocable<Run&, std::stop_token> named_thread(
      thread_setup setup, Run run);

  bool joinable() const noexcept { return thread_ != nullptr && thread_->joinable(); }
  bool request_stop() noexcept { return thread_ != nullptr && thread_->request_stop(); }
  /// @pre joinable()
  void join() { thread_->join(); }

  /// The kernel's thread id, as shown by `ps -L` and Perfetto.
  ::pid_t id() const noexcept { return id_; }
  const std::string& name() const noexcept { return name_; }

  /// The placement that the thread got, and why it differs from the requested placement.
  const std::vector<grant>& grants() const noexcept { return grants_; }

 private:
  struct start {
    std::vector<grant> grants;
    std::exception_ptr failure;
    ::pid_t id = 0;
    std::atomic<bool> done{false};
  };

  ::pid_t id_ = 0;
  std::string name_;
  std::vector<grant> grants_;
  owned_at_home<std::jthread> thread_;  // null if no thread was started
};

// ---------------------------------------------------------------------------------------------

template <class Run>
requires std::invocable<Run&> || std::invocable<Run&, std::stop_token> named_thread::named_thread(
    thread_setup setup, Run run)
    : name_(setup.name) {
  // Shared: the thread may still be in notify_all after this function has returned.
  const auto started = std::make_shared<start>();
  thread_ = make_at_home<std::jthread>([setup = std::move(setup), run = std::move(run),
                                        started]([[maybe_unused]] std::stop_token stop) mutable {
    dataset::unblock_sigbus();  // the inherited signal mask may block it
    std::exception_ptr failure;
    try {
      started->grants = set_up_this_thread(setup);
    } catch (...) {
      failure = std::current_exception();
    }
    const bool runs = failure == nullptr;
    started->failure = std::move(failure);  // now the waiting thread is the only owner
    started->id = static_cast<::pid_t>(::syscall(SYS_gettid));
    started->done.store(true, std::memory_order_release);
    started->done.notify_all();
    if (!runs) return;
    if constexpr (std::invocable<Run&, std::stop_token>) {
      run(std::move(stop));
    } else {
      run();
    }
  });
  started->done.wait(false, std::memory_order_acquire);
  if (started->failure) std::rethrow_exception(std::exchange(started->failure, nullptr));
  grants_ = std::move(started->grants);
  id_ = started->id;
}

}  // namespace millrace::loader
