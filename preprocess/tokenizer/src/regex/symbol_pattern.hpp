// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "regex/alphabet.hpp"
#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {

/// Writes `tree` as a regular expression over symbols, in the syntax of PCRE2 (and Perl) without
/// any options. Uses explicit classes of bytes, non-capturing groups, and look-around for anchors.
///
/// @param letters  the alphabet that was built from the sets of `tree`
std::string symbol_pattern(const pattern_tree& tree, const alphabet& letters);

}  // namespace millrace::tokenizer::detail
