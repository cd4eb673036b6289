// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
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

struct vocab_entry {
  std::string spelled;  ///< in the byte alphabet, or the text of a special token
  std::int32_t id = 0;
};

/// Reads a GPT-2 `vocab.json`: one JSON object that maps spelled tokens to ids.
///
/// Refuses input whose meaning Hugging Face only guesses. (Hugging Face takes the last of two equal
/// keys, skips values that are not numbers, and truncates ids to 32 bits.) As in Hugging Face, ids
/// may have gaps and may be in any order.
///
/// A key with a character outside the byte alphabet can never come from text. Such a key is
/// accepted only if it is written like a special token, as `<...>` or `[...]`.
///
/// @return the entries by ascending id; keys and ids are distinct, and ids are in 0 .. 2^22 - 1.
/// @throws format_error  the text is not such an object. The offset is that of the invalid entry,
///                       or of the byte where the text stops being such an object.
std::vector<vocab_entry> parse_vocab_json(std::string_view json);

}  // namespace millrace::tokenizer::detail
