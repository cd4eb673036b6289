// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// BPE as the package tiktoken does it, from either of two files, told apart by their contents.
///
/// A `.tiktoken` file has the tokens and their ids. Its pattern has to be named, as nothing in it
/// does, and may end in `_base`, as tiktoken's names do; where the name is that of a public
/// vocabulary (special_tables.hpp), the number of ranks has to be that vocabulary's, and its
/// special tokens are known. Given special tokens get the ids behind the last rank instead. In
/// texts they are characters like any others
/// (`encode_ordinary`), unless the options say otherwise.
///
/// A `.vocab.json` is what Megatron's TikTokenizer takes: ids are ranks behind `num_special_tokens`
/// special ones, the size is `vocab_size`, the pattern `v1` or `v2` (if not given), the eod `</s>`.
/// Special tokens in texts become their ids, unless the options say otherwise.
///
/// @throws config_error  an option is missing, not taken with this file, or not what it may be.
/// @throws io_error      the file cannot be read.
/// @throws format_error  the file is neither.
std::unique_ptr<tokenizer> make_tiktoken_tokenizer(const tokenizer_options& options);

}  // namespace millrace::tokenizer::detail
