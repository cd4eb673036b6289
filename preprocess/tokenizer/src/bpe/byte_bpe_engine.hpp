// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpe/byte_merges.hpp"
#include "bpe/merge_table.hpp"
#include "bpe/token_table.hpp"
#include "composed/section_engine.hpp"
#include "split/instruction_set.hpp"
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

/// What changes speed and memory, never ids.
struct byte_bpe_tuning {
  /// Of the words that one encoder remembers; its tables take what fits, a few KiB at least.
  std::size_t memory_bytes = std::size_t{64} << 20;
  instruction_set set = best_instruction_set();
};

/// Byte-level BPE: pretokens, then merges inside each.
std::unique_ptr<const section_engine> make_byte_bpe_engine(
    byte_bpe_vocabulary vocabulary, std::unique_ptr<const word_splitter> splitter,
    byte_bpe_tuning tuning = {});

}  // namespace millrace::tokenizer::detail
