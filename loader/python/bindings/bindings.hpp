// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

/// One function per source file: each adds its classes to the extension module.
namespace millrace::python {

void bind_indexed_dataset(nanobind::module_& module);
void bind_runs(nanobind::module_& module);
void bind_loader(nanobind::module_& module);
void bind_device_loader(nanobind::module_& module);
void bind_tokenizer(nanobind::module_& module);

}  // namespace millrace::python
