// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer {

/// What becomes of special tokens that a text spells out, e.g. `</s>`.
enum class special_tokens_in_text : std::uint8_t {
  as_reference,    ///< what the program does that the type imitates
  allow,           ///< they become their ids
  encode_as_text,  ///< they are characters like any others
  error,           ///< the text is refused
};

/// Megatron's tokenizer flags, as given.
struct tokenizer_options {
  std::string type = "ByteLevelTokenizer";  ///< `--tokenizer-type`
  std::filesystem::path model;              ///< `--tokenizer-model`
  std::filesystem::path vocab_file;         ///< `--vocab-file`
  std::filesystem::path merge_file;         ///< `--merge-file`
  std::optional<std::int64_t> vocab_size;   ///< `--vocab-size`
};

/// Builds the tokenizer that the options name.
///
///   ByteLevelTokenizer   no options; ids are the UTF-8 bytes, vocabulary 512, eod 0
///   NullTokenizer        vocab_size; text is ids with single spaces between, eod vocab_size - 1
///   GPT2BPETokenizer     vocab_file, merge_file; eod `<|endoftext|>`
///   SentencePieceTokenizer, GPTSentencePieceTokenizer, Llama2Tokenizer
///                        model, a SentencePiece file; eod its end-of-sentence piece
///
/// @throws config_error  an unknown type, an option that is missing, or one that the type does
///                       not take.
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file is not what its option says.
std::unique_ptr<tokenizer> make_tokenizer(const tokenizer_options& options);

}  // namespace millrace::tokenizer
