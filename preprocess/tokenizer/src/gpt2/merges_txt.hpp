// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bpe/merge_table.hpp"

namespace millrace::tokenizer::detail {

/// Maps tokens, spelled in the byte alphabet, to ids.
using token_ids = std::unordered_map<std::string_view, std::int32_t>;

/// Reads a GPT-2 `merges.txt`. Each line has two spelled tokens, separated by one space. Lines are
/// in order of rank.
///
/// Reads it as Hugging Face does: skips lines that begin with "#version", accepts LF and CRLF as
/// line ends, and does not require a line end after the last line. If two lines have the same pair,
/// the later line wins (merge_table ensures this). Refuses an empty file, because no tool writes
/// one.
///
/// @throws format_error  a line does not have two tokens, or a token or the merge result is not in
///                       `ids`. The offset is that of the line.
std::vector<merge_rule> parse_merges_txt(std::string_view text, const token_ids& ids);

}  // namespace millrace::tokenizer::detail
