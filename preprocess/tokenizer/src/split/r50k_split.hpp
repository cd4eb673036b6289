// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace::tokenizer::detail {

/// End of the pretoken of `text` that begins at `begin`, by GPT-2's pattern
///
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
///
/// in the Unicode version of unicode_classes.hpp. Pretokens cover a text without gaps: start at 0
/// and go on from each end. `text` is what lies between special tokens, because the pattern looks
/// ahead to its end.
///
/// @param text  valid UTF-8; on anything else the ends still advance and stay inside
/// @pre begin < text.size(), and `begin` is 0 or the end of a pretoken.
std::size_t r50k_end(std::string_view text, std::size_t begin) noexcept;

}  // namespace millrace::tokenizer::detail
