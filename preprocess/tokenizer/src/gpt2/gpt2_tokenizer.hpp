// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// GPT-2's byte-level BPE, with exactly the ids of Hugging Face's GPT2Tokenizer.
///
/// `<|endoftext|>` in a text is always the special token. If the vocabulary lacks it, it gets the
/// id after the number of entries, as in the `transformers` package; where gaps between ids make
/// that id another token's, the vocabulary is refused.
///
/// Its size is the number of tokens, or the highest id and one where ids have gaps (`transformers`
/// says the number of tokens even then, and so may choose a dtype that cannot hold them).
///
/// @throws io_error      a file cannot be read.
/// @throws format_error  a file is not what it should be, or a byte has no token (those that UTF-8
///                       never has, C0, C1, F5 to FF, may lack one).
std::unique_ptr<tokenizer> make_gpt2_tokenizer(const std::filesystem::path& vocab_file,
                                               const std::filesystem::path& merge_file);

}  // namespace millrace::tokenizer::detail
