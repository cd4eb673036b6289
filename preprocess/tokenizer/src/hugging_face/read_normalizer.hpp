// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "composed/interfaces.hpp"
#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The normalizer that a tokenizer.json describes: what Hugging Face's tokenizers 0.23.3 do with
/// it. Null for null.
///
/// @param path  of `json` in its file, as messages name it
/// @throws format_error  it is none that is known, or one that cannot be honoured exactly
std::unique_ptr<const normalizer> read_normalizer(const json_node& json,
                                                  const std::string& path = "normalizer");

}  // namespace millrace::tokenizer::detail
