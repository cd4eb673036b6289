// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "composed/section_engine.hpp"
#include "sentencepiece/model_file.hpp"

namespace millrace::tokenizer::detail {

/// How much the encoders of an engine remember, in buckets of two; tests make it tiny.
struct cache_sizes {
  std::size_t short_buckets = std::size_t{1} << 17;  ///< 64 bytes each
  std::size_t long_buckets = std::size_t{1} << 15;   ///< 128 bytes each
};

/// SentencePiece's BPE with its normalization, exactly.
///
/// @param model  of type bpe; may go afterwards
/// @throws format_error, config_error  the model cannot be honoured
std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const cache_sizes& sizes = {});

/// The same for models of type unigram.
std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const cache_sizes& sizes = {});

}  // namespace millrace::tokenizer::detail
