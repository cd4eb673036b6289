// SPDX-License-Identifier: Apache-2.0
//
// The extension module millrace._core: the C++ library's datasets, runs, loaders and tokenizers.
// The package's Python files add what needs no C++.
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include <nanobind/nanobind.h>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

#include "bindings.hpp"

namespace millrace::python {

without_gil::~without_gil() {
  ++returning;
  if (python_ends && std::this_thread::get_id() != last_thread) {
    --returning;
    for (;;) ::pause();
  }
  PyEval_RestoreThread(thread_);
  --returning;
}

void without_gil::keep_out_others() {
  using std::chrono::milliseconds;
  last_thread = std::this_thread::get_id();
  python_ends = true;
  // Lets the threads finish that found Python running.
  PyThreadState* const thread = PyEval_SaveThread();
  for (int i = 0; i < 1000 && returning > 0; ++i) std::this_thread::sleep_for(milliseconds(1));
  PyEval_RestoreThread(thread);
}

}  // namespace millrace::python

NB_MODULE(_core, module) {
  namespace python = millrace::python;
  // At exit, Python need not delete every object, such as those of threads that still run.
  nanobind::set_leak_warnings(false);
  nanobind::module_::import_("atexit").attr("register")(
      nanobind::cpp_function(python::without_gil::keep_out_others));
  module.doc() = "The C++ part of millrace.";
  python::translate_errors();
  module.attr("version") = MILLRACE_PYTHON_VERSION;
  module.attr("has_cuda") = millrace::loader::cuda::runtime_api() != nullptr;
  module.attr("cuda_version") = millrace::loader::cuda::runtime_version();
  python::bind_indexed_dataset(module);
  python::bind_tokenizer(module);
  python::bind_runs(module);
  python::bind_loader(module);
  python::bind_device_loader(module);
}
