// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// The ids of Megatron's TikTokenizer: special tokens, then ranks.
struct megatron_layout {
  std::vector<std::string> special_tokens;  ///< id of each is its place
  std::int64_t vocab_size = 0;              ///< greater than their number
};

/// What the options say: the special tokens given, which have to include the usual seven, or those
/// seven; then `<SPECIAL_7>`, `<SPECIAL_8>`, ... up to their number, 1000 if not given.
///
/// @throws config_error  Megatron would refuse them.
megatron_layout megatron_layout_of(const tokenizer_options& options);

}  // namespace millrace::tokenizer::detail
