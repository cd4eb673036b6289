// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

#include "bindings.hpp"

namespace millrace::python {

/// The calls of a loader from Python: one thread at a time, which waits without the GIL. An error
/// that ended the run is raised again by every later `next()`, so that no caller takes it for the
/// end of the data.
class loader_calls {
 public:
  /// Waits until no other thread is in a call of this loader.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> enter() const {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) {
      const without_gil released;
      lock.lock();
    }
    return lock;
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
        const without_gil released;
        auto next = next_for(turn);
        if (!next.timed_out) return std::move(next.batch);
      } catch (const config_error&) {  // the caller keeps too many batches, and may delete some
        throw;
      } catch (...) {
        failure_ = std::current_exception();
        throw;
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  template <class Loader>
  std::string state(const Loader& loader) const {
    const auto alone = enter();
    const without_gil released;
    return write_state(loader.state());
  }

  /// Sets the loader to another position, where an earlier error does not count.
  /// @pre the caller has entered
  template <class Loader>
  void load_state(Loader& loader, const std::string& json, const std::vector<std::string>& allow) {
    dataset::resume_terms terms;
    terms.allow = allow;
    const without_gil released;
    loader.load_state(json, std::move(terms));
    failure_ = nullptr;
  }

 private:
  // Recursive, because Python may collect garbage in a call, and a finalizer may call the loader.
  mutable std::recursive_mutex mutex_;
  std::exception_ptr failure_;
};

/// Adds the methods and properties that the loaders on the host and on a device share.
/// @param host  the batch_loader of an object of the class
template <class Loader, class Host>
void bind_calls(nb::class_<Loader>& bound, const Host& host) {
  bound.def("state", &Loader::state)
      .def("load_state", &Loader::load_state, nb::arg("json"), nb::arg("allow"))
      .def_prop_ro("consumed_samples",
                   [](const Loader& self) { return self.loader().consumed_samples(); })
      .def_prop_ro("micro_batches", [host](const Loader& self) -> std::optional<std::int64_t> {
        const std::int64_t count = host(self).micro_batches();
        if (count == dataset::sampler::unbounded) return std::nullopt;
        return count;
      });
}

}  // namespace millrace::python
