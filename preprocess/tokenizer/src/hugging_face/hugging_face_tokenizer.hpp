// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

struct hugging_face_options {
  /// Whether the ids that the post-processor puts around a text (BOS, CLS, EOS, SEP) are there:
  /// Megatron's default. False is its `--tokenizer-hf-no-include-special-tokens`; there tokens
  /// then go through their strings once more, so that one that takes white space along is unknown
  /// next to such. Here it keeps its id.
  bool include_special_tokens = true;
  /// Special tokens besides those of the files, as Megatron hands them to `transformers`: found in
  /// texts as they come. One that the vocabulary has keeps its id; others get the next ids.
  std::vector<std::string> special_tokens = {};
  /// As the reference: allow.
  special_tokens_in_text in_text = special_tokens_in_text::as_reference;
};

/// The tokenizer of a `tokenizer.json`, or of a folder that `AutoTokenizer` would open, with
/// exactly the ids of Hugging Face's tokenizers.
///
/// Ids of added tokens are those that are given there (added_vocabulary), not those in the file.
/// Truncation and padding of the file do not count, as they do not for `AutoTokenizer`. A single
/// file names no end of document; a folder's is its eos token, or its sep token.
///
/// vocab_size() is one above the highest id; that is the number of tokens where ids have no gaps.
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file is not what it should be, or asks for what is not honoured here.
/// @throws config_error  files contradict each other, or a special token is empty or can have no
///                       id.
std::unique_ptr<tokenizer> make_hugging_face_tokenizer(const std::filesystem::path& file_or_folder,
                                                       const hugging_face_options& options);

/// What to do where such a tokenizer names no token that ends a document, and one is needed.
std::string advice_on_eod(const std::filesystem::path& file_or_folder);

}  // namespace millrace::tokenizer::detail
