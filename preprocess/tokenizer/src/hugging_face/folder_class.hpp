// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The `transformers` class with which AutoTokenizer opens a folder.
struct folder_class {
  std::string name;       ///< e.g. "GPT2TokenizerFast"; empty if no file names it
  bool of_model = false;  ///< the name comes from config.json

  /// The name without the suffixes "Tokenizer", "Backend" and "Fast". Only this part matters.
  std::string_view stem() const noexcept;
};

/// Determines the class of a folder. It is the "tokenizer_class" of tokenizer_config.json,
/// otherwise the "tokenizer_class" of config.json. If both are missing, it follows from the
/// model_type of config.json: it is the class that releases 4.57 and 5.23 use for this model_type.
/// They must use the same class, or two classes that differ only in name.
///
/// @param model  text of config.json, or empty if the folder has none
/// @throws format_error  no class is known for config.json; the error's path is "config.json"
folder_class class_of_folder(const json_node& config, std::string_view model);

}  // namespace millrace::tokenizer::detail
