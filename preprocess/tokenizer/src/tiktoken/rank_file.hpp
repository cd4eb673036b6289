// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Reads a `.tiktoken` file: for each token a line of its bytes in base64, a space and its rank,
/// which is its id. Ranks come in any order and may have gaps; lines end in LF or CRLF, the last
/// one may lack its end, and empty ones are skipped.
///
/// @param tokens  empty
/// @throws format_error  a line is something else, or a rank or a token is there twice, with the
///                       offset of the line; or the file has no token.
void parse_rank_file(std::string_view text, ranked_tokens& tokens);

}  // namespace millrace::tokenizer::detail
