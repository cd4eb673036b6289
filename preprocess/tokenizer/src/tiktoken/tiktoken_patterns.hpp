// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// The pattern that --tiktoken-pattern calls `name`.
/// @throws config_error  no pattern has that name.
pattern tiktoken_pattern(std::string_view name);

/// All names, for error messages.
std::string tiktoken_pattern_names();

}  // namespace millrace::tokenizer::detail
