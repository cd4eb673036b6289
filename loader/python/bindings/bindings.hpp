// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>

#include <nanobind/nanobind.h>

/// What the sources of the extension module share. Each of them has one function `bind_`, which
/// adds its classes to the module.
namespace millrace::python {

namespace nb = nanobind;

void bind_indexed_dataset(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_device_loader(nb::module_& module);
void bind_tokenizer(nb::module_& module);

/// Makes every `millrace::error` that leaves a bound function a Python exception of the class of
/// the same name (millrace/_errors.py).
void translate_errors();

/// Releases the GIL for as long as it exists.
///
/// nanobind's own class takes the GIL back also while Python ends. Python then ends the thread
/// inside of the destructor, which aborts the process. This class lets such a thread, often a
/// daemon thread, sleep until the process has ended.
class without_gil {
 public:
  without_gil() noexcept : thread_(PyEval_SaveThread()) {}
  ~without_gil();
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;

  /// Call this when Python begins to end, on the thread that ends it. Afterwards, no other thread
  /// takes the GIL back.
  static void keep_out_others();

 private:
  inline static std::atomic<bool> python_ends = false;
  inline static std::atomic<int> returning = 0;  // threads that take the GIL back
  inline static std::thread::id last_thread;     // the one that ends Python

  PyThreadState* thread_;
};

}  // namespace millrace::python
