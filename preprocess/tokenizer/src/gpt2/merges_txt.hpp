// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Ids by spelled token.
using token_ids = std::unordered_map<std::string_view, std::int32_t>;

/// Reads a GPT-2 `merges.txt`: two spelled tokens a line with one space between, in order of rank.
///
/// As Hugging Face reads it: lines that begin with "#version" are skipped, lines end in LF or
/// CRLF, the last one may lack its end, and of two lines for one pair the later counts
/// (merge_table sees to that). A file without a single byte is refused, as no tool writes one.
///
/// @throws format_error  a line is not two tokens; or one of them, or what they merge to, is not
///                       in `ids`. The offset is that of the line.
std::vector<merge_rule> parse_merges_txt(std::string_view text, const token_ids& ids);

}  // namespace millrace::tokenizer::detail
