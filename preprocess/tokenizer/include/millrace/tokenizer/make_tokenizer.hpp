// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer {

/// How to treat special tokens that a text spells out, e.g. `</s>`.
enum class special_tokens_in_text : std::uint8_t {
  as_reference,    ///< as the reference program of the type
  allow,           ///< encode them as their ids
  encode_as_text,  ///< encode them like any other text
  error,           ///< refuse the text
};

/// Megatron's tokenizer flags and some of our own, as given.
struct tokenizer_options {
  std::string type = "ByteLevelTokenizer";      ///< `--tokenizer-type`
  std::filesystem::path model;                  ///< `--tokenizer-model`: a file or a folder
  std::filesystem::path vocab_file;             ///< `--vocab-file`
  std::filesystem::path merge_file;             ///< `--merge-file`
  std::optional<std::int64_t> vocab_size;       ///< `--vocab-size`
  std::optional<std::int64_t> vocab_extra_ids;  ///< `--vocab-extra-ids`

  std::vector<std::string> special_tokens;  ///< `--tokenizer-special-tokens`
  special_tokens_in_text in_text =
      special_tokens_in_text::as_reference;  ///< `--special-tokens-in-text`
  std::string eod_token;                     ///< `--eod-token`: end-of-document token

  std::string tiktoken_pattern;                             ///< `--tiktoken-pattern`
  std::optional<std::int64_t> tiktoken_num_special_tokens;  ///< `--tiktoken-num-special-tokens`
  bool sentencepiece_legacy = false;                        ///< `--tokenizer-sentencepiece-legacy`
  /// false: `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`
  bool sentencepiece_ignore_extra_whitespaces = true;
  /// false: `--tokenizer-hf-no-include-special-tokens`
  bool hf_include_special_tokens = true;
  std::optional<std::int64_t> null_eod_id;  ///< `--null-tokenizer-eod-id`
  std::optional<std::int64_t> null_pad_id;  ///< `--null-tokenizer-pad-id`; unused
};

/// Creates a tokenizer.
///
///     millrace::tokenizer::tokenizer_options options;
///     options.type = "HuggingFaceTokenizer";
///     options.model = "llama/";
///     const auto tokenizer = millrace::tokenizer::make_tokenizer(options);
///
///   ByteLevelTokenizer   no options; ids are the UTF-8 bytes, vocabulary 512, eod 0
///   NullTokenizer        vocab_size; text is ids separated by single spaces; eod vocab_size - 1
///                        or null_eod_id
///   GPT2BPETokenizer     vocab_file, merge_file; eod `<|endoftext|>`
///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer
///                        model, a SentencePiece file; eod its end-of-sentence piece
///   HuggingFaceTokenizer model, a tokenizer.json or the folder of one; eod the folder's eos token
///   BertWordPieceLowerCase, BertWordPieceCase
///                        vocab_file, a vocab.txt, followed by <extra_id_0> to <extra_id_99>; eod
///                        `[SEP]`
///   TikTokenizer         model: a `.tiktoken` file of ranks, with tiktoken_pattern, or Megatron's
///                        `.vocab.json`
///
/// @throws config_error  the type is unknown, an option is missing, or the type does not take an
///                       option.
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file does not have the expected format.
std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options);

/// Explains why a tokenizer with these options has no end-of-document token, and what to do.
/// @throws io_error, format_error  as make_tokenizer
std::string missing_eod(const tokenizer_options& options);

/// The optional parts of this build, for `--version`: "PCRE2 10.42" or "without PCRE2". Hugging
/// Face tokenizers with uncommon regular expressions need it.
std::string optional_parts();

}  // namespace millrace::tokenizer
