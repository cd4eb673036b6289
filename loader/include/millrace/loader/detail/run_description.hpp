// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <utility>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/loader/detail/memory/named_thread.hpp>
#include <millrace/loader/detail/state.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

/// The state of a run at its start, computed on a separate thread. Computing it opens all datasets.
/// With thousands of datasets, that takes long and must not delay the first batch. Nor may it wait
/// until the first checkpoint, hours later: damage would be found late, and files may have been
/// replaced by then.
///
/// Thread-safe, except for `throw_failure`.
class run_description {
 public:
  run_description(const dataset::run& run, const loader_options& options)
      : state_(run.description()),
        thread_({.name = "mr-describe"}, [this, end = run.end(), options] {
          std::exception_ptr failure;
          try {
            state_ = describe(std::move(state_), end, options);
          } catch (...) {
            failure = std::current_exception();
          }
          // Set after the exception handler has ended, because the handler shares ownership of the
          // exception. Now `failure_` is its only owner.
          failure_ = std::move(failure);
          done_.store(true, std::memory_order_release);
          done_.notify_all();
        }) {}
  run_description(const run_description&) = delete;
  run_description& operator=(const run_description&) = delete;

  /// Waits for the result.
  /// @throws as `describe`, on every call
  const dataset::run_state& get() const {
    done_.wait(false, std::memory_order_acquire);
    if (failure_) std::rethrow_exception(failure_);
    return state_;
  }

  /// Throws the failure of the thread, if there is one; never waits. For one thread only.
  /// @throws as `describe`, once
  void throw_failure() {
    if (told_ || !done_.load(std::memory_order_acquire)) return;
    told_ = true;
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  dataset::run_state state_;
  std::exception_ptr failure_;
  std::atomic<bool> done_{false};
  bool told_ = false;
  named_thread thread_;  // last: it uses the other members
};

}  // namespace millrace::loader
