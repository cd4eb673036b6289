// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hugging_face/tokenizer_file.hpp"

namespace millrace::tokenizer::detail {

/// Does to a tokenizer what the `tokenizer_config.json` beside it says, as `AutoTokenizer` does and
/// Megatron after it: tokens that are added, and the end of a document.
///
/// The file `tokenizer.json` decides on everything else: classes of `transformers` that would
/// build another tokenizer from parts of it do not count.
///
/// Refused by name: code of the folder's own (`auto_map`), `split_special_tokens`, and entries that
/// contradict the file (`add_prefix_space`, what a Bert class says of its normalizer, and what a
/// Llama class says of BOS and EOS: which of the two counts depends on the version there).
///
/// @param config   text of tokenizer_config.json
/// @param map      text of special_tokens_map.json, which says what the config leaves open; may be
///                 empty
/// @param special_tokens_count  whether BOS and EOS will be put around texts
/// @return the id that ends a document: of the eos token, else of the sep token
/// @throws format_error  of the config, without its path
std::optional<std::int32_t> apply_config(tokenizer_file& file, std::string_view config,
                                         std::string_view map, bool special_tokens_count);

}  // namespace millrace::tokenizer::detail
