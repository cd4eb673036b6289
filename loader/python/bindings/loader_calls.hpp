// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

namespace millrace::python {

namespace nb = nanobind;

/// The calls of a loader from Python: one thread at a time; waiting without the GIL; and an error
/// that was raised once is raised by every later `next()`, so that no caller takes the end of a
/// failed run for the end of the data.
class loader_calls {
 public:
  /// Waits until no other thread is in a call of this loader.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> enter() const {
    const nb::gil_scoped_release released;
    return std::unique_lock(mutex_);
  }

  /// Waits for a batch in turns, so that Ctrl-C is seen.
  ///
  /// @param next_for  waits for a batch for the given time: `batch_loader::next_for`, for example
  /// @pre the caller has entered
  template <class Next>
  auto wait(const Next& next_for) {
    constexpr auto turn = std::chrono::milliseconds(100);
    if (failure_) std::rethrow_exception(failure_);
    for (;;) {
      try {
        const nb::gil_scoped_release released;
        auto next = next_for(turn);
        if (!next.timed_out) return std::move(next.batch);
      } catch (...) {
        failure_ = std::current_exception();
        throw;
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  /// Forgets the error, because the loader was set to another position.
  void forget_failure() noexcept { failure_ = nullptr; }

 private:
  // Recursive, because Python may collect garbage in a call, and a finalizer may call the loader.
  mutable std::recursive_mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace millrace::python
