// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hugging_face/folder_class.hpp"
#include "hugging_face/tokenizer_file.hpp"

namespace millrace::tokenizer::detail {

/// Texts of the files beside tokenizer.json.
struct folder_texts {
  std::string_view config;  ///< tokenizer_config.json, `{}` where there is none
  std::string_view map;     ///< special_tokens_map.json, empty where there is none
  std::string_view added;   ///< added_tokens.json, empty where there is none
  std::string_view model;   ///< config.json, empty where there is none
};

/// What a folder says beyond the tokens that it adds.
struct folder_answer {
  folder_class opened_as;
  std::optional<std::int32_t> eod;  ///< the id that ends a document: of the eos, else the sep token
};

/// Does to a tokenizer what the `tokenizer_config.json` beside it says, as `AutoTokenizer` does and
/// Megatron after it: tokens that are added, and the end of a document.
///
/// The file `tokenizer.json` decides on everything else: classes of `transformers` that would
/// build another tokenizer from parts of it do not count.
///
/// Refused by name: code of the folder's own (`auto_map`), `split_special_tokens`, and entries that
/// contradict the file (`add_prefix_space`, what a Bert class says of its normalizer, and what a
/// Llama class says of BOS and EOS: which of the two counts depends on the version there), tokens
/// that only the class has, and tokens with two sets of flags.
///
/// A config with "added_tokens_decoder" says everything. Without it, what special_tokens_map.json
/// names goes before the config's names, and a token of added_tokens.json that tokenizer.json does
/// not add with that id is refused. What no file names or nulls has the name that the class gives,
/// which config.json tells where the config does not (folder_class.hpp).
///
/// @param special_tokens_count  whether BOS and EOS will be put around texts
/// @throws format_error  with the file's name as its path; of the config, without
folder_answer apply_config(tokenizer_file& file, const folder_texts& texts,
                           bool special_tokens_count);

}  // namespace millrace::tokenizer::detail
