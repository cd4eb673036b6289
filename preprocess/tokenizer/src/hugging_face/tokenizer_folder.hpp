// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hugging_face/folder_class.hpp"
#include "hugging_face/tokenizer_file.hpp"

namespace millrace::tokenizer::detail {

/// The texts of the other files in the folder of tokenizer.json.
struct folder_texts {
  std::string_view config;  ///< tokenizer_config.json, `{}` if there is none
  std::string_view map;     ///< special_tokens_map.json, empty if there is none
  std::string_view added;   ///< added_tokens.json, empty if there is none
  std::string_view model;   ///< config.json, empty if there is none
};

/// The settings that a folder defines, apart from the flags of added tokens.
struct folder_answer {
  folder_class opened_as;
  std::optional<std::int32_t> eod;  ///< id of the eos token, otherwise of the sep token
  /// The names of control tokens, such as `bos_token`, and the tokens that have them, as in
  /// `special_tokens_map` of transformers.
  std::vector<std::pair<std::string, std::string>> names;
};

/// Applies a folder's `tokenizer_config.json` to a tokenizer, first as `AutoTokenizer` does, then
/// as Megatron does. Adds tokens and determines the end-of-document token.
///
/// `tokenizer.json` decides everything else. Some classes of `transformers` would use only parts of
/// `tokenizer.json` to build another tokenizer. This function does not imitate them.
///
/// Refuses code in the folder (`auto_map`), `split_special_tokens`, tokens that only the class
/// defines, tokens with two sets of flags, and entries that contradict `tokenizer.json`. Such
/// entries are `add_prefix_space`, the normalizer settings of a Bert class, and the BOS and EOS
/// settings of a Llama class. If such an entry contradicts `tokenizer.json`, the version of
/// `transformers` decides which of the two wins.
///
/// If the config has "added_tokens_decoder", the other files are not read for tokens. Otherwise,
/// names in special_tokens_map.json override those of the config, and a token of added_tokens.json
/// is refused unless tokenizer.json adds it with the same id. A name that no file sets, not even to
/// null, gets the token that the class defines. If the config does not name the class, config.json
/// does (folder_class.hpp).
///
/// @param special_tokens_count  true if BOS and EOS will be put around texts
/// @throws format_error  a file is not supported. The path of the error is the file's name, or
///                       empty for the config.
folder_answer apply_config(tokenizer_file& file, const folder_texts& texts,
                           bool special_tokens_count);

}  // namespace millrace::tokenizer::detail
