// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// Returns `json` with each integer of 19 digits or more replaced by a float of the same size in
/// bytes. The float keeps fewer digits. This is needed because simdjson refuses integers above 64
/// bits, but files contain them: `transformers` writes 10^30 as model_max_length. Accepts any text.
/// Does not change the contents of strings.
std::string with_floats_for_wide_integers(std::string_view json);

}  // namespace millrace::tokenizer::detail
