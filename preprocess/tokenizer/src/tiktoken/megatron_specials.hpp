// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::tokenizer::detail {

/// The ids of Megatron's TikTokenizer. Special tokens have the first ids, ranks have the following
/// ids.
struct megatron_layout {
  std::vector<std::string> special_tokens;  ///< the id of each is its index
  std::int64_t vocab_size = 0;              ///< greater than the number of special tokens
};

/// Returns the layout that the options specify. The special tokens are those of the options, which
/// must include the usual seven. By default, they are the usual seven. Then `<SPECIAL_7>`,
/// `<SPECIAL_8>` and so on are added, up to the number of special tokens that the options give
/// (default: 1000).
///
/// @throws config_error  Megatron would refuse the options.
megatron_layout megatron_layout_of(const tokenizer_options& options);

}  // namespace millrace::tokenizer::detail
