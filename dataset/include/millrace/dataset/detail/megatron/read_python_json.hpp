// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The value of a JSON text as json.loads understands it, for printing it again: integers of any
/// size, NaN and Infinity, lone surrogates, the last of equal keys.
///
/// @throws format_error  it is no JSON, or is nested deeper than 200 levels.
MILLRACE_EXPORT python_json read_python_json(std::string_view text);

}  // namespace millrace::dataset
