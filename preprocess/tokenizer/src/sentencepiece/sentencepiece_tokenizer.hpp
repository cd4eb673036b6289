// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <millrace/tokenizer/tokenizer.hpp>

#include "composed/interfaces.hpp"
#include "sentencepiece/model_file.hpp"

namespace millrace::tokenizer::detail {

struct sentencepiece_options {
  /// As the reference, and as text, the control pieces that a text spells out are characters. If
  /// they are allowed, what is between them is encoded as texts of their own.
  special_tokens_in_text special_tokens = special_tokens_in_text::as_reference;
  /// Megatron's `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`, if false.
  bool ignore_extra_whitespaces = true;
  /// What ends documents, if it is not to be the model's end-of-sentence piece: a control piece by
  /// its name (it has no text), or the token that has this text.
  std::string eod_token = {};
  engine_tuning tuning = {};
};

/// The tokenizer of a SentencePiece `.model` file, with exactly the ids of sentencepiece 0.2.3's
/// `encode` (0.2.2 and later; earlier releases settle ties in Unigram models otherwise). It adds no
/// BOS and no EOS. Its size is the number of pieces, its eod the end-of-sentence piece.
///
/// @throws io_error      the file cannot be read.
/// @throws format_error  it is no such model, or one that is refused (model_file.hpp).
/// @throws config_error  an option cannot be honoured with this model.
std::unique_ptr<tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& model,
                                                        const sentencepiece_options& options);

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
