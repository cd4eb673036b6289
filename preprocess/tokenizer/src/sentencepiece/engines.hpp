// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "bpe/engine_tuning.hpp"
#include "composed/section_engine.hpp"
#include "sentencepiece/model_file.hpp"

namespace millrace::tokenizer::detail {

/// SentencePiece's BPE with its normalization, exactly.
///
/// @param model  of type bpe; may go afterwards
/// @throws format_error, config_error  the model cannot be honoured
std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const engine_tuning& tuning = {});

/// The same for models of type unigram.
std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const engine_tuning& tuning = {});

}  // namespace millrace::tokenizer::detail
