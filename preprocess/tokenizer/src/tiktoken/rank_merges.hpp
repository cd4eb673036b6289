// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Derives the merge list that is equivalent to a vocabulary of tokens with ranks.
///
/// tiktoken merges the adjacent pair whose joined bytes are the token of lowest rank (on ties, the
/// leftmost pair). It does not matter which two tokens form the pair. But a token always results
/// from the same two tokens: the merges within its bytes depend only on these bytes, so its parts
/// are the last two pieces to which its own bytes merge. If its bytes stop merging while more than
/// two pieces are left, the token never results from a merge.
///
/// The list is in order of id. In a vocabulary that does not come from training alone (such as
/// Llama 3's), a result may have a lower id than its parts.
std::vector<merge_rule> merges_of_ranked(const ranked_tokens& tokens,
                                         const std::array<std::int32_t, 256>& byte_ids);

}  // namespace millrace::tokenizer::detail
