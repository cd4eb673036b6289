// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

struct gpt2_options {
  /// Special tokens besides `<|endoftext|>`, distinct. One that is a key of the vocabulary has its
  /// id; others get the next ids, as in the `transformers` package.
  std::vector<std::string> special_tokens = {};
  special_tokens_in_text in_text = special_tokens_in_text::as_reference;  ///< which is to allow
};

/// GPT-2's byte-level BPE, with exactly the ids of Hugging Face's GPT2Tokenizer.
///
/// `<|endoftext|>` in a text is the special token. If the vocabulary lacks it, it gets the
/// id after the number of entries, as in the `transformers` package; where gaps between ids make
/// that id another token's, the vocabulary is refused.
///
/// Its size is the number of tokens, or the highest id and one where ids have gaps (`transformers`
/// says the number of tokens even then, and so may choose a dtype that cannot hold them).
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file is not what it should be, or a byte has no token (those that UTF-8
///                       never has, C0, C1, F5 to FF, may lack one).
/// @throws config_error  a special token is empty or there twice.
std::unique_ptr<tokenizer> make_gpt2_tokenizer(const std::filesystem::path& vocab_file,
                                               const std::filesystem::path& merge_file,
                                               const gpt2_options& options = {});

}  // namespace millrace::tokenizer::detail
