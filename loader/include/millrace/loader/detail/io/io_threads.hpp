// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/detail/memory/home_process.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/memory/one_per_process.hpp>

namespace millrace::loader {

/// A pool of threads that all readers of a process share. The threads mostly wait for storage, so
/// there may be more of them than spare cores. They use no CPU time when there is nothing to read.
/// Threads start on demand. The destructor waits for running tasks and drops queued tasks. In a
/// forked process, it does nothing. The threads are named mr-io-0, mr-io-1, ...
///
/// All members may be called from any thread, but tasks of the pool may only call `when_idle`.
class io_threads {
 public:
  static constexpr int usual = 8;

  /// @param most   maximum number of threads; with 0, callers do all work themselves
  /// @param setup  CPUs and NUMA node of the threads; the pool sets their names
  explicit io_threads(int most = usual, thread_setup setup = {})
      : most_(std::max(most, 0)), setup_(std::move(setup)) {}
  io_threads(const io_threads&) = delete;
  io_threads& operator=(const io_threads&) = delete;
  ~io_threads() {
    if (!home_.is_here()) return;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_->notify_all();
    for (std::thread& thread : *threads_) thread.join();
  }

  /// The pool that readers share by default. It is destroyed when its last user releases it.
  static std::shared_ptr<io_threads> of_process() { return one_per_process<io_threads>(); }

  int most() const noexcept { return most_; }
  std::int64_t running() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::int64_t>(threads_->size());
  }

  /// Calls `task(i)` for each i from 0 to count - 1. The calls run on the calling thread and on at
  /// most `threads - 1` threads of the pool; a thread that becomes free takes the next i. Returns
  /// when all calls have returned.
  ///
  /// @throws the exception of a call of `task`; if several calls threw, that of the lowest i. The
  ///         other calls are made nevertheless.
  template <class Task>
  void for_each(std::size_t count, int threads, const Task& task) {
    if (count == 0) return;
    if (count == 1) {
      task(std::size_t{0});
      return;
    }
    const auto work = std::make_shared<job>(count, task);
    const auto helpers = std::min({static_cast<std::size_t>(std::max(threads - 1, 0)), count - 1,
                                   static_cast<std::size_t>(most_)});
    if (helpers > 0) ask(work, helpers);
    work->run();
    work->wait();
  }

  /// Queues an idle task: `task` runs on a thread of the pool when no other work is queued. Only
  /// one idle task runs at a time. The task must not throw. If the pool has no threads, or is
  /// destroyed before the task starts, the task does not run. Tasks may queue further tasks.
  void when_idle(std::function<void()> task) {
    if (most_ == 0) return;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;  // the destructor joins the threads that there are, so start no more
      idle_.push_back(std::move(task));
      start(1);
    }
    wake_->notify_one();
  }

 private:
  /// The work of one call of `for_each`. If a helper (a thread of the pool) begins after the work
  /// is done, the job outlives the call.
  class job {
   public:
    template <class Task>
    job(std::size_t count, const Task& task)
        : count_(count), context_(&task), call_([](const void* context, std::size_t i) {
            (*static_cast<const Task*>(context))(i);
          }) {}

    void run() {
      std::size_t ended = 0;
      for (;;) {
        const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
        if (i >= count_) break;
        try {
          call_(context_, i);
        } catch (...) {
          const std::lock_guard lock(mutex_);
          if (i < failed_) {
            failed_ = i;
            error_ = std::current_exception();
          }
        }
        ++ended;
      }
      if (ended == 0) return;
      const std::lock_guard lock(mutex_);
      ended_ += ended;
      if (ended_ == count_) all_ended_.notify_all();
    }

    void wait() {
      std::unique_lock lock(mutex_);
      all_ended_.wait(lock, [&] { return ended_ == count_; });
      // The exception is moved out of the job. Otherwise, the last helper to release the job might
      // destroy the exception on the helper's own thread.
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    }

   private:
    const std::size_t count_;
    const void* context_;
    void (*call_)(const void*, std::size_t);
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;
    std::condition_variable all_ended_;
    std::size_t ended_ = 0;
    std::size_t failed_ = ~std::size_t{0};
    std::exception_ptr error_;
  };

  // Queues the job for up to `helpers` threads. If memory runs out, fewer threads or none help.
  // This function must not throw: an exception would end `for_each` while a queued job still points
  // to the task of that call.
  void ask(const std::shared_ptr<job>& work, std::size_t helpers) noexcept {
    std::size_t asked = 0;
    {
      const std::lock_guard lock(mutex_);
      try {
        for (; asked < helpers; ++asked) urgent_.push_back([work] { work->run(); });
      } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the caller does the work
      }
      start(asked);
    }
    asked == 1 ? wake_->notify_one() : wake_->notify_all();
  }

  // Starts at most `tasks` threads for new tasks. Starts no more threads than `most_` allows or the
  // work needs.
  // @pre mutex_ is locked
  void start(std::size_t tasks) noexcept {
    const std::size_t wanted =
        std::min(busy_ + urgent_.size() + std::min<std::size_t>(idle_.size(), 1),
                 static_cast<std::size_t>(most_));
    for (; tasks > 0 && threads_->size() < wanted; --tasks) {
      try {
        thread_setup setup = setup_;
        setup.name = "mr-io-" + std::to_string(threads_->size());
        threads_->emplace_back([this, setup = std::move(setup)] {
          try {
            (void)set_up_this_thread(setup);
          } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it runs anywhere
          }
          serve();
        });
      } catch (const std::exception&) {
        return;  // no thread can be started, or there is no memory: callers do the work themselves
      }
    }
  }

  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_->wait(
          lock, [&] { return closing_ || !urgent_.empty() || (!idle_.empty() && !idle_running_); });
      if (closing_) return;
      const bool is_idle_task = urgent_.empty();
      auto& queue = is_idle_task ? idle_ : urgent_;
      std::function<void()> task = std::move(queue.front());
      queue.pop_front();
      if (is_idle_task) idle_running_ = true;
      ++busy_;
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
      --busy_;
      if (is_idle_task) idle_running_ = false;
    }
  }

  const home_process home_;
  const int most_;
  const thread_setup setup_;
  mutable std::mutex mutex_;
  // The threads wait on this. In a forked process, its destructor would wait for these threads
  // forever, so it is destroyed only in the process that created it.
  owned_at_home<std::condition_variable> wake_ = make_at_home<std::condition_variable>();
  std::deque<std::function<void()>> urgent_;
  std::deque<std::function<void()>> idle_;
  bool idle_running_ = false;
  bool closing_ = false;
  std::size_t busy_ = 0;
  // Declared last: threads use the other members.
  owned_at_home<std::vector<std::thread>> threads_ = make_at_home<std::vector<std::thread>>();
};

}  // namespace millrace::loader
