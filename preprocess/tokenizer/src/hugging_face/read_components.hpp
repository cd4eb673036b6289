// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/interfaces.hpp"
#include "hugging_face/json_node.hpp"
#include "normalize/normalizers.hpp"
#include "pre_tokenize/piece_stage.hpp"
#include "pre_tokenize/pre_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// Builds the normalizer that a tokenizer.json describes, with the behavior of Hugging Face's
/// tokenizers 0.23.3. Returns null for a JSON null.
///
/// @param path  path of `json` in its file, for messages
/// @throws format_error  the normalizer is unknown, or cannot be reproduced exactly
std::unique_ptr<const normalizer> read_normalizer(const json_node& json,
                                                  const std::string& path = "normalizer");

/// Builds the pre-tokenizer that a tokenizer.json describes, with the behavior of Hugging Face's
/// tokenizers 0.23.3. Returns null for a JSON null.
///
/// @param path  path of `json` in its file, for messages
/// @throws format_error  the pre-tokenizer is unknown, or cannot be reproduced exactly
std::unique_ptr<const pre_tokenizer> read_pre_tokenizer(const json_node& json,
                                                        const std::string& path = "pre_tokenizer");

/// The components of a tokenizer.json that use arbitrary regular expressions.

/// Creates the stage for a Split whose pattern is a Regex.
/// @throws pattern_error
stage_pointer make_regex_stage(std::string_view pattern, split_behavior behavior, bool invert);

/// Creates the normalizer for a Replace whose pattern is a Regex. Inserts `content` literally,
/// without references to groups.
/// @throws pattern_error  the pattern is not supported, or can match the empty text
normalizer_pointer make_regex_replace(std::string_view pattern, std::string content);

}  // namespace millrace::tokenizer::detail
