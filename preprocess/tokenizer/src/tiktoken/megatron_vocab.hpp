// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Reads the vocabulary of Megatron's TikTokenizer, a `.vocab.json`. It is a JSON list of objects
/// with `rank`, `token_bytes` in base64, and `token_str`, which is ignored. Ranks are 0, 1, 2 and
/// so on, in this order. The first 256 tokens are the single bytes.
///
/// @param first_id  id of the token of rank 0
/// @param end_id    only tokens whose ids are below this are read
/// @param tokens    must be empty
/// @throws format_error  the file has another form; the offset is that of the invalid entry, or of
///                       the byte where the text stops being JSON. Also thrown if the file has too
///                       few tokens for the ids below `end_id`.
void parse_megatron_vocab(std::string_view json, std::int32_t first_id, std::int32_t end_id,
                          ranked_tokens& tokens);

/// The ids of Megatron's TikTokenizer. Special tokens have the first ids, and ranks have the ids
/// after these.
struct megatron_layout {
  std::vector<std::string> special_tokens;  ///< the id of a token is its index
  std::int64_t vocab_size = 0;              ///< greater than the number of special tokens
};

/// Returns the layout that the options specify. If the options name special tokens, these must
/// include the usual seven. Otherwise, the special tokens are the usual seven. Then tokens such as
/// `<SPECIAL_7>`, in which the number is the id, are added until there are as many special tokens
/// as the options require (default: 1000).
///
/// @throws config_error  Megatron would refuse the options.
megatron_layout megatron_layout_of(const tokenizer_options& options);

}  // namespace millrace::tokenizer::detail
