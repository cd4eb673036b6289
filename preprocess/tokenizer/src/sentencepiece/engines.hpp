// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "composed/section_engine.hpp"
#include "sentencepiece/model_file.hpp"
#include "split/instruction_set.hpp"

namespace millrace::tokenizer::detail {

/// What changes speed and memory, never ids.
struct sentencepiece_tuning {
  /// Of the fragments that one encoder remembers; its tables take what fits, a few KiB at least.
  std::size_t memory_bytes = std::size_t{64} << 20;
  instruction_set set = best_instruction_set();
};

/// SentencePiece's BPE with its normalization, exactly.
///
/// @param model  of type bpe; may go afterwards
/// @throws format_error, config_error  the model cannot be honoured
std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const sentencepiece_tuning& tuning = {});

/// The same for models of type unigram.
std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const sentencepiece_tuning& tuning = {});

}  // namespace millrace::tokenizer::detail
