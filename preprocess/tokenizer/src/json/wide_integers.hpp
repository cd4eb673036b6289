// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// `json` with each integer of 19 digits and more spelled as the float that is nearest, in as many
/// bytes: simdjson takes no integer above 64 bits, and files have them (`transformers` writes 10^30
/// into model_max_length). Any text; what is in strings stays.
std::string with_floats_for_wide_integers(std::string_view json);

}  // namespace millrace::tokenizer::detail
