// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// Returns `json` with each integer of 19 digits or more replaced by a float. The float has the
/// same size in bytes, so it keeps fewer digits. simdjson refuses integers above 64 bits, but files
/// have them (`transformers` writes 10^30 to model_max_length). Accepts any text; strings do not
/// change.
std::string with_floats_for_wide_integers(std::string_view json);

}  // namespace millrace::tokenizer::detail
