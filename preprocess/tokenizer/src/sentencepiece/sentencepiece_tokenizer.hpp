// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <millrace/tokenizer/tokenizer.hpp>

#include "core/interfaces.hpp"
#include "sentencepiece/model_file.hpp"

namespace millrace::tokenizer::detail {

struct sentencepiece_options {
  /// How to treat control pieces that a text spells out. With as_reference and encode_as_text, they
  /// are encoded as characters. With allow, they become ids, and each stretch of text between them
  /// is encoded as a separate text.
  special_tokens_in_text special_tokens = special_tokens_in_text::as_reference;
  /// False means Megatron's `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`.
  bool ignore_extra_whitespaces = true;
  /// The end-of-document token: the name of a control piece (which has no text), or the text of
  /// another token. If empty, the end-of-document token is the model's end-of-sentence piece.
  std::string eod_token = {};
  engine_tuning tuning = {};
};

/// Creates the tokenizer of a SentencePiece `.model` file. It gives exactly the ids that `encode`
/// of sentencepiece 0.2.3 gives. (Release 0.2.2 gives the same ids, but earlier releases break ties
/// in Unigram models differently.) It adds neither BOS nor EOS. Its vocabulary size is the number
/// of pieces. Its end-of-document token is the end-of-sentence piece, unless `options` names
/// another.
///
/// @throws io_error      the file cannot be read.
/// @throws format_error  the file is not a SentencePiece model, or the model is refused
///                       (model_file.hpp).
/// @throws config_error  an option is not supported for this model.
std::unique_ptr<tokenizer> make_sentencepiece_tokenizer(const std::filesystem::path& model,
                                                        const sentencepiece_options& options);

/// Creates an engine that gives the same ids as SentencePiece's BPE, including normalization.
///
/// @param model  of type bpe; need not outlive the engine
/// @throws format_error, config_error  the model is not supported
std::unique_ptr<const section_engine> make_sentencepiece_bpe_engine(
    const sentencepiece_model& model, const engine_tuning& tuning = {});

/// Like make_sentencepiece_bpe_engine, for models of type unigram.
std::unique_ptr<const section_engine> make_sentencepiece_unigram_engine(
    const sentencepiece_model& model, const engine_tuning& tuning = {});

}  // namespace millrace::tokenizer::detail
