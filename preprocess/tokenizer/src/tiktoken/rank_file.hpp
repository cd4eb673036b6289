// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Reads a `.tiktoken` file. Each line has a token's bytes in base64, a space, and the token's
/// rank, which is its id. Ranks may be in any order and have gaps. Lines end in LF or CRLF, and the
/// last line may have no line end. Empty lines are skipped.
///
/// @param tokens  must be empty
/// @throws format_error  a line has another form, or repeats a rank or a token; the offset is that
///                       of the line. Also thrown if the file has no tokens.
void parse_rank_file(std::string_view text, ranked_tokens& tokens);

}  // namespace millrace::tokenizer::detail
