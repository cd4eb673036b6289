// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {

/// Reads a regular expression as Oniguruma 6.9.10 does in the syntax that Hugging Face's
/// tokenizers use: `^` and `$` are ends of lines, `.` is no newline but under (?m), \s \d \w and
/// properties are those of Unicode 16, `{1,3}+` is a repeat of a repeat.
///
/// Refused is whatever is not surely the same there: back references, \X \R \K \G, absent groups,
/// conditions, look-behind of variable length, stacked quantifiers, and letters under (?i) that
/// have other forms than ASCII's cases, k's Kelvin sign and s's long s.
///
/// @param pattern  valid UTF-8
/// @throws pattern_error
pattern_tree parse_pattern(std::string_view pattern);

}  // namespace millrace::tokenizer::detail
