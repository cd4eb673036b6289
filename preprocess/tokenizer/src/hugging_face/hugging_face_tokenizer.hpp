// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

struct hugging_face_options {
  /// If true, as by default in Megatron, add the ids that the post-processor puts around a text
  /// (BOS, CLS, EOS, SEP). False is Megatron's `--tokenizer-hf-no-include-special-tokens`. Megatron
  /// then looks tokens up again by their strings, so that a token that consumed white space becomes
  /// unknown. In millrace, that token keeps its id.
  bool include_special_tokens = true;
  /// Special tokens besides those of the files, as Megatron passes them to `transformers`: they are
  /// matched in the original text. A token of the vocabulary keeps its id; others get the next ids.
  std::vector<std::string> special_tokens = {};
  /// as_reference means allow.
  special_tokens_in_text in_text = special_tokens_in_text::as_reference;
};

/// The tokenizer of a `tokenizer.json`, or of a folder that `AutoTokenizer` would open, with
/// exactly the ids of Hugging Face's tokenizers.
///
/// Added tokens get the ids that Hugging Face assigns (added_vocabulary), not those in the file.
/// Truncation and padding in the file are ignored, as by `AutoTokenizer`. A single file has no
/// end-of-document token. For a folder, it is the eos token or, if there is none, the sep token.
///
/// vocab_size() is the highest id plus 1, which is the number of tokens if ids have no gaps.
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file does not have the expected format, or uses an unsupported feature.
/// @throws config_error  files contradict each other, or a special token is empty or cannot get an
///                       id.
std::unique_ptr<tokenizer> make_hugging_face_tokenizer(const std::filesystem::path& file_or_folder,
                                                       const hugging_face_options& options);

/// Advice for a tokenizer that has no end-of-document token but needs one.
std::string advice_on_eod(const std::filesystem::path& file_or_folder);

}  // namespace millrace::tokenizer::detail
