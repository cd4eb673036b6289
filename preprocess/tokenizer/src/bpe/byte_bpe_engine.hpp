// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpe/byte_merges.hpp"
#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"
#include "composed/interfaces.hpp"
#include "split/splitters.hpp"

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
/// @pre the pattern is none of those for BERT
std::unique_ptr<const section_engine> make_byte_bpe_engine(byte_bpe_vocabulary vocabulary,
                                                           pattern pretokens,
                                                           engine_tuning tuning = {});

}  // namespace millrace::tokenizer::detail
