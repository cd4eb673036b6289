// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "normalize/normalizers.hpp"
#include "pre_tokenize/piece_stage.hpp"

/// The components of a tokenizer.json that use arbitrary regular expressions.
namespace millrace::tokenizer::detail {

/// Creates the stage for a Split whose pattern is a Regex.
/// @throws pattern_error
stage_pointer make_regex_stage(std::string_view pattern, split_behavior behavior, bool invert);

/// Creates the normalizer for a Replace whose pattern is a Regex. Inserts `content` literally,
/// without references to groups.
/// @throws pattern_error  the pattern is not supported, or can match the empty text
normalizer_pointer make_regex_replace(std::string_view pattern, std::string content);

}  // namespace millrace::tokenizer::detail
