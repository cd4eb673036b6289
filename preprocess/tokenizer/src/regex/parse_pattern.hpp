// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {

/// Parses a regular expression as Oniguruma 6.9.10 does, in the syntax that Hugging Face's
/// tokenizers use. `^` and `$` match at line boundaries. `.` matches a newline only under (?m). \s,
/// \d, \w and properties use Unicode 16. In `x{1,3}+`, the `+` repeats `x{1,3}`.
///
/// Rejects everything that might differ from Oniguruma: back references, \X, \R, \K, \G, absent
/// groups, conditions, look-behind of variable length, and stacked quantifiers. Under (?i), also
/// rejects letters whose case forms are not ASCII. The exceptions are k (Kelvin sign) and s (long
/// s).
///
/// @param pattern  valid UTF-8
/// @throws pattern_error
pattern_tree parse_pattern(std::string_view pattern);

}  // namespace millrace::tokenizer::detail
