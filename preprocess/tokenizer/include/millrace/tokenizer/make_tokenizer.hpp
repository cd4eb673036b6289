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

/// What becomes of special tokens that a text spells out, e.g. `</s>`.
enum class special_tokens_in_text : std::uint8_t {
  as_reference,    ///< what the program does that the type imitates
  allow,           ///< they become their ids
  encode_as_text,  ///< they are characters like any others
  error,           ///< the text is refused
};

/// Megatron's tokenizer flags and some of ours, as given.
struct tokenizer_options {
  std::string type = "ByteLevelTokenizer";  ///< `--tokenizer-type`
  std::filesystem::path model;              ///< `--tokenizer-model`: a file, or a folder of them
  std::filesystem::path vocab_file;         ///< `--vocab-file`
  std::filesystem::path merge_file;         ///< `--merge-file`
  std::optional<std::int64_t> vocab_size;   ///< `--vocab-size`
  std::optional<std::int64_t> vocab_extra_ids;  ///< `--vocab-extra-ids`

  std::vector<std::string> special_tokens;  ///< `--tokenizer-special-tokens`
  special_tokens_in_text in_text =
      special_tokens_in_text::as_reference;  ///< `--special-tokens-in-text`
  std::string eod_token;                     ///< `--eod-token`: which token ends a document

  std::string tiktoken_pattern;                             ///< `--tiktoken-pattern`
  std::optional<std::int64_t> tiktoken_num_special_tokens;  ///< `--tiktoken-num-special-tokens`
  bool sentencepiece_legacy = false;                        ///< `--tokenizer-sentencepiece-legacy`
  /// off by `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`
  bool sentencepiece_ignore_extra_whitespaces = true;
  /// off by `--tokenizer-hf-no-include-special-tokens`
  bool hf_include_special_tokens = true;
  std::optional<std::int64_t> null_eod_id;  ///< `--null-tokenizer-eod-id`
  std::optional<std::int64_t> null_pad_id;  ///< `--null-tokenizer-pad-id`; nothing pads here
};

/// Builds the tokenizer that the options name.
///
///   ByteLevelTokenizer   no options; ids are the UTF-8 bytes, vocabulary 512, eod 0
///   NullTokenizer        vocab_size; text is ids with single spaces between, eod vocab_size - 1
///                        or null_eod_id
///   GPT2BPETokenizer     vocab_file, merge_file; eod `<|endoftext|>`
///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer
///                        model, a SentencePiece file; eod its end-of-sentence piece
///   HuggingFaceTokenizer model, a tokenizer.json or the folder of one; eod the folder's eos token
///   BertWordPieceLowerCase, BertWordPieceCase
///                        vocab_file, a vocab.txt, with <extra_id_0> to <extra_id_99> behind it;
///                        eod
///                        `[SEP]`
///   TikTokenizer         model: a `.tiktoken` file of ranks, with tiktoken_pattern, or Megatron's
///                        `.vocab.json`
///
/// @throws config_error  an unknown type, an option that is missing, or one that the type does
///                       not take.
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file is not what its option says.
std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options);

/// Why the tokenizer that the options name has no token that ends a document, and what to do.
/// @throws io_error, format_error  as make_tokenizer
std::string missing_eod(const tokenizer_options& options);

/// The optional parts of this build, for `--version`: "PCRE2 10.42" or "without PCRE2", which
/// tokenizers of Hugging Face need whose regular expressions are none of the well-known ones.
std::string optional_parts();

}  // namespace millrace::tokenizer
