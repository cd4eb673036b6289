// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"
#include "composed/section_engine.hpp"
#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// A byte-level vocabulary, as a loader has read and checked it.
struct byte_bpe_vocabulary {
  /// The tokens that text can give: their bytes. Special tokens are not among them.
  token_table tokens;
  /// Token of each byte, or -1: then that byte gives nothing.
  std::array<std::int32_t, 256> byte_ids{};
  /// In order of rank.
  std::vector<merge_rule> merges;
  /// A pretoken that is a token is that token, whatever its merges would give (`ignore_merges`,
  /// tiktoken).
  bool whole_words_first = false;
};

/// Byte-level BPE: pretokens, then merges inside each.
std::unique_ptr<const section_engine> make_byte_bpe_engine(
    byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter);

/// The merge list that a vocabulary of ranks stands for: for each token of two bytes or more, in
/// order of id, the two tokens that it is made of when only lower ones may merge.
///
/// Tokens of which no such pair exists (merging never reaches them) have no rule.
/// @pre ids are ranks
std::vector<merge_rule> merges_of_ranks(const token_table& tokens,
                                        const std::array<std::int32_t, 256>& byte_ids);

}  // namespace millrace::tokenizer::detail
