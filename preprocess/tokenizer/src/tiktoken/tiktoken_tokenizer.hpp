// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <millrace/tokenizer/tokenizer.hpp>

#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// Creates a tokenizer that performs BPE as the package tiktoken does. It accepts two kinds of
/// files, and distinguishes them by their contents.
///
/// A `.tiktoken` file has the tokens and their ids, but not the pattern. So the options must name
/// the pattern. The name may end in `_base`, as in tiktoken. Special tokens that the options give
/// get the ids after the last rank. If the options give no special tokens, and the name is that of
/// a public vocabulary (special_tables.hpp), then that vocabulary's special tokens are used. In
/// this case, the file must have as many ranks as the vocabulary. Special tokens in texts are
/// encoded like other characters (`encode_ordinary`), unless the options specify otherwise.
///
/// A `.vocab.json` is the file of Megatron's TikTokenizer. The first `num_special_tokens` ids are
/// special tokens, and the other ids are ranks. The vocabulary size is `vocab_size`, the pattern is
/// `v1` or `v2` (default: `v2`), and the end-of-document token is `</s>`. Special tokens in texts
/// become their ids, unless the options specify otherwise.
///
/// @throws config_error  an option is missing, invalid, or not supported with this kind of file.
/// @throws io_error      the file cannot be read.
/// @throws format_error  the file has neither of the two formats.
std::unique_ptr<tokenizer> make_tiktoken_tokenizer(const tokenizer_options& options);

/// The pattern that --tiktoken-pattern calls `name`.
/// @throws config_error  no pattern has that name.
pattern tiktoken_pattern(std::string_view name);

/// The names of all patterns, for error messages.
std::string tiktoken_pattern_names();

}  // namespace millrace::tokenizer::detail
