// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "regex/alphabet.hpp"
#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {

/// A regular expression over symbols, in the syntax of PCRE2 and Perl without any option: classes
/// of bytes written out, groups that remember nothing, and places by what lies around them.
///
/// @param letters  made of the sets of `tree`
std::string symbol_pattern(const pattern_tree& tree, const alphabet& letters);

}  // namespace millrace::tokenizer::detail
