// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "composed/interfaces.hpp"
#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// Builds the normalizer that a tokenizer.json describes, with the behavior of Hugging Face's
/// tokenizers 0.23.3. Returns null for a JSON null.
///
/// @param path  path of `json` in its file, for messages
/// @throws format_error  the normalizer is unknown, or cannot be reproduced exactly
std::unique_ptr<const normalizer> read_normalizer(const json_node& json,
                                                  const std::string& path = "normalizer");

}  // namespace millrace::tokenizer::detail
