// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {

struct hugging_face_options {
  /// If true (Megatron's default), add the ids that the post-processor puts around a text (BOS,
  /// CLS, EOS, SEP). False is Megatron's `--tokenizer-hf-no-include-special-tokens`. With that
  /// flag, Megatron looks up tokens again by their strings, so a token that consumed white space
  /// becomes unknown. In millrace, it keeps its id.
  bool include_special_tokens = true;
  /// Special tokens in addition to those of the files, as Megatron passes them to `transformers`.
  /// They are matched in the original text. A token keeps its id if it is already in the
  /// vocabulary. Other tokens get the next ids.
  std::vector<std::string> special_tokens = {};
  /// Here `as_reference` has the same effect as `allow`.
  special_tokens_in_text in_text = special_tokens_in_text::as_reference;
};

/// All files of a folder that make_hugging_face_tokenizer reads.
inline constexpr std::array files_of_tokenizer_folder = {"tokenizer.json", "tokenizer_config.json",
                                                         "special_tokens_map.json",
                                                         "added_tokens.json", "config.json"};

/// The tokenizer of a `tokenizer.json`, or of a folder that `AutoTokenizer` would open. It gives
/// exactly the ids of Hugging Face's tokenizers.
///
/// Added tokens get the ids that Hugging Face assigns (added_vocabulary), not those in the file.
/// Ignores truncation and padding in the file, as `AutoTokenizer` does. A single file has no
/// end-of-document token. A folder's end-of-document token is its eos token, otherwise its sep
/// token.
///
/// vocab_size() is the highest id plus 1. This is the number of tokens if ids have no gaps.
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file does not have the expected format, or uses an unsupported feature.
/// @throws config_error  files contradict each other, or a special token is empty or cannot get an
///                       id.
std::unique_ptr<tokenizer> make_hugging_face_tokenizer(const std::filesystem::path& file_or_folder,
                                                       const hugging_face_options& options);

/// Advice for a user whose tokenizer needs an end-of-document token but has none.
std::string advice_on_eod(const std::filesystem::path& file_or_folder);

/// Returns the part of a tokenizer's identity that its files do not determine, for fingerprints.
/// Records the policy `as_reference` as `allow`, because both give the same ids.
inline std::string identity_of(const hugging_face_options& options) {
  const bool allowed = options.in_text == special_tokens_in_text::as_reference;
  const auto in_text = allowed ? special_tokens_in_text::allow : options.in_text;
  std::string identity = std::string("include_special_tokens ") +
                         (options.include_special_tokens ? "yes" : "no") + "\nin_text " +
                         std::to_string(static_cast<int>(in_text)) + "\nunicode " +
                         unicode_version + "\n";
  for (const std::string& token : options.special_tokens) {
    identity += "special " + std::to_string(token.size()) + " " + token + "\n";
  }
  return identity;
}

/// BERT's tokenizer for a `vocab.txt`, as in Megatron's BertWordPieceLowerCase and
/// BertWordPieceCase. It puts `[CLS]` before each text and `[SEP]` after it. `[SEP]` is also the
/// end-of-document token. The vocabulary is followed by `<extra_id_0>` to `<extra_id_99>`, then by
/// the special tokens of the options. If a text contains one of these additional tokens, the token
/// becomes its id.
///
/// @param vocab_file  one token per line, with ids from 0. Lines end as in Python's text files.
/// @throws io_error      the file cannot be read.
/// @throws format_error  the file is not UTF-8, contains a token twice, or lacks one of BERT's
///                       special tokens.
/// @throws config_error  a special token of the options is empty.
/// @pre `options` has no special tokens if `lower_case` is false
std::unique_ptr<tokenizer> make_bert_word_piece_tokenizer(const std::filesystem::path& vocab_file,
                                                          bool lower_case,
                                                          const hugging_face_options& options = {});

}  // namespace millrace::tokenizer::detail
