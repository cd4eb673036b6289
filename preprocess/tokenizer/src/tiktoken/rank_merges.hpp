// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "bpe/merge_table.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {

/// The merge list that a vocabulary of ranks stands for.
///
/// tiktoken merges the neighbours whose bytes together are the token of lowest rank, the leftmost
/// on ties, whichever two tokens they are. But they are always the same two: what happens inside a
/// token until it exists depends on its bytes alone, so it is made of what its own bytes have come
/// to when two pieces are left. A token whose bytes stop before that is never made by merging.
///
/// In order of id. A result may have a lower id than its parts, in vocabularies that were not
/// made by training alone (Llama 3's).
std::vector<merge_rule> merges_of_ranked(const ranked_tokens& tokens,
                                         const std::array<std::int32_t, 256>& byte_ids);

}  // namespace millrace::tokenizer::detail
