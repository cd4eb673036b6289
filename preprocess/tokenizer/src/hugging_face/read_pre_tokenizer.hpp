// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "hugging_face/json_node.hpp"
#include "pre_tokenize/pre_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// Builds the pre-tokenizer that a tokenizer.json describes, with the behavior of Hugging Face's
/// tokenizers 0.23.3. Returns null for a JSON null.
///
/// @param path  path of `json` in its file, for messages
/// @throws format_error  the pre-tokenizer is unknown, or cannot be reproduced exactly
std::unique_ptr<const pre_tokenizer> read_pre_tokenizer(const json_node& json,
                                                        const std::string& path = "pre_tokenizer");

}  // namespace millrace::tokenizer::detail
