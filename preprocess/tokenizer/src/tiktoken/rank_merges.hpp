// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// Derives the merge list that is equivalent to a vocabulary of ranks.
///
/// tiktoken merges the adjacent pair whose bytes together are the token of lowest rank (on ties,
/// the leftmost pair), whatever the two tokens of the pair are. But a token always results from the
/// same two tokens: the merges within its bytes depend only on those bytes, so its parts are the
/// last two pieces to which its own bytes merge. If the bytes of a token stop merging while more
/// than two pieces are left, the token never results from a merge.
///
/// The list is in order of id. A result may have a lower id than its parts, in vocabularies that
/// do not come from training alone (Llama 3's).
std::vector<merge_rule> merges_of_ranked(const ranked_tokens& tokens,
                                         const std::array<std::int32_t, 256>& byte_ids);

}  // namespace millrace::tokenizer::detail
