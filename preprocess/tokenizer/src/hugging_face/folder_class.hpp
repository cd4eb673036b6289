// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The class of `transformers` with which AutoTokenizer opens a folder.
struct folder_class {
  std::string name;       ///< e.g. "GPT2TokenizerFast"; empty: no file says it
  bool of_model = false;  ///< config.json says it, not tokenizer_config.json

  /// The name without "Tokenizer" and what is behind that, which is all that counts.
  std::string_view stem() const noexcept;
};

/// "tokenizer_class" of tokenizer_config.json, else that of config.json, else the class for its
/// model_type, where releases 4.57 and 5.23 have the same one, or two that differ in name only.
///
/// @param model  text of config.json, empty where there is none
/// @throws format_error  of config.json, with that name as its path: the class is not known
folder_class class_of_folder(const json_node& config, std::string_view model);

}  // namespace millrace::tokenizer::detail
