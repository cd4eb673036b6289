// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Maps spelled tokens to ids.
using token_ids = std::unordered_map<std::string_view, std::int32_t>;

/// Reads a GPT-2 `merges.txt`: two spelled tokens per line, separated by one space, in order of
/// rank.
///
/// Reads it as Hugging Face does: lines that begin with "#version" are skipped, lines end in LF or
/// CRLF, and the last line may lack its line end. If two lines have the same pair, the later one
/// wins (merge_table ensures that). An empty file is refused, as no tool writes one.
///
/// @throws format_error  a line is not two tokens, or one of them or their merge result is not in
///                       `ids`. The offset is that of the line.
std::vector<merge_rule> parse_merges_txt(std::string_view text, const token_ids& ids);

}  // namespace millrace::tokenizer::detail
