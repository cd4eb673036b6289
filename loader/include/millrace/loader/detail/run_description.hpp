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

/// The state of a run at its start, found out by a thread of its own: to open thousands of datasets
/// must not keep the first batch waiting, and a checkpoint, hours later, must neither be the first
/// to hear that one of them is damaged nor find files that were put there meanwhile.
///
/// Any thread, but for `throw_failure`.
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
          // Not from the handler, which has a share in the exception: so this is its one owner.
          failure_ = std::move(failure);
          done_.store(true, std::memory_order_release);
          done_.notify_all();
        }) {}
  run_description(const run_description&) = delete;
  run_description& operator=(const run_description&) = delete;

  /// @throws as `describe`; each time
  const dataset::run_state& get() const {
    done_.wait(false, std::memory_order_acquire);
    if (failure_) std::rethrow_exception(failure_);
    return state_;
  }

  /// Nothing while it is not known. For one thread.
  /// @throws as `describe`; once
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
  named_thread thread_;  // last: it uses the rest
};

}  // namespace millrace::loader
