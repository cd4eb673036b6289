// SPDX-License-Identifier: Apache-2.0
//
// The extension module millrace._core: the C++ library's datasets, runs, loaders and tokenizers.
// The package's Python files add what needs no C++.
#include <nanobind/nanobind.h>

#include <string>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

#include "bindings.hpp"
#include "errors.hpp"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  namespace python = millrace::python;
  // At exit, Python need not delete every object, such as those of threads that still run.
  nb::set_leak_warnings(false);
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
