// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// The splitter that `--tiktoken-pattern` names.
/// @throws config_error  there is none of that name.
std::unique_ptr<const word_splitter> make_tiktoken_splitter(std::string_view name);

/// All names, for messages.
std::string tiktoken_pattern_names();

}  // namespace millrace::tokenizer::detail
