// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

struct gpt2_options {
  /// Special tokens in addition to `<|endoftext|>`, without duplicates. A token keeps its id if it
  /// is a key of the vocabulary. Other tokens get the next ids, as in the `transformers` package.
  std::vector<std::string> special_tokens = {};
  special_tokens_in_text in_text = special_tokens_in_text::as_reference;  ///< default: allow
};

/// GPT-2's byte-level BPE, with exactly the ids of Hugging Face's GPT2Tokenizer.
///
/// By default, `<|endoftext|>` in a text is encoded as the special token. If the vocabulary lacks
/// this token, its id is the number of entries, as in the `transformers` package. If ids have gaps
/// and another token has that id, the vocabulary is refused.
///
/// vocab_size() is the number of tokens, or the highest id plus 1 if ids have gaps. (`transformers`
/// uses the number of tokens even if ids have gaps. It may then choose a dtype that cannot hold the
/// ids.)
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file does not have the expected format, or a byte has no token. Bytes
///                       that never occur in UTF-8 (C0, C1, F5 to FF) need no token.
/// @throws config_error  a special token is empty or duplicated.
std::unique_ptr<tokenizer> make_gpt2_tokenizer(const std::filesystem::path& vocab_file,
                                               const std::filesystem::path& merge_file,
                                               const gpt2_options& options = {});

}  // namespace millrace::tokenizer::detail
