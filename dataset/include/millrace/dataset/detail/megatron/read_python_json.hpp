// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Parses a JSON text as json.loads does, so that it can be printed again. Keeps integers of any
/// size, NaN, Infinity and lone surrogates; of equal keys, the last value wins.
///
/// @throws format_error  the text is not JSON, or is nested deeper than 200 levels.
MILLRACE_EXPORT python_json read_python_json(std::string_view text);

}  // namespace millrace::dataset
