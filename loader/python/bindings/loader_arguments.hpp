// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <nanobind/nanobind.h>

#include <millrace/loader/options.hpp>

#include "arrays.hpp"
#include "run_handle.hpp"

namespace millrace::python {

/// The element type of tokens, labels and position ids.
enum class id_type : std::uint8_t { int64, int32, source };

/// The arguments of the Python class `Loader`, which the loaders on the host and on a device share.
struct loader_arguments {
  loader::loader_options options;  ///< `fields` and `memory` are not set
  field_names fields;
  array_output output = array_output::numpy;
  id_type ids = id_type::int64;
  bool reuse = false;
  bool has_max_held = false;    ///< false: `options.held` is the default of the host
  bool has_look_ahead = false;  ///< false: `options.look_ahead` is the default
};

/// Reads the arguments that millrace/_loader.py passes.
/// @throws config_error    a value is out of range or contradicts another
/// @throws nb::type_error  a value has another type
loader_arguments arguments_of(const run_handle& run, const nb::kwargs& given);

}  // namespace millrace::python
