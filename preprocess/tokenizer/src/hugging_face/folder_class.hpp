// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// The `transformers` class with which AutoTokenizer opens a folder.
struct folder_class {
  std::string name;       ///< e.g. "GPT2TokenizerFast"; empty if no file names it
  bool of_model = false;  ///< the name comes from config.json

  /// The name without the suffixes "Tokenizer", "Backend" and "Fast". Only this part matters.
  std::string_view stem() const noexcept;
};

/// Determines the class of a folder: the "tokenizer_class" of tokenizer_config.json, otherwise the
/// "tokenizer_class" of config.json. If both are missing, it is the class that `transformers` uses
/// for the model_type of config.json. Releases 4.57 and 5.23 must use the same class, or classes
/// that differ only in name.
///
/// @param model  text of config.json, or empty if the folder has none
/// @throws format_error  no class is known for config.json; the error's path is "config.json"
folder_class class_of_folder(const json_node& config, std::string_view model);

/// The names of control tokens in `transformers`.
inline constexpr std::array<const char*, 7> token_names = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

/// A control token that a class of `transformers` defines. A file in the folder may override it.
struct class_token {
  std::string_view name;
  std::string_view content;
  bool always;  ///< true if release 4.57 defines it, false if only release 5.23 does
};

/// The control tokens that a class defines in the signature of its constructor, in release 4.57 or
/// 5.23.
/// @param stem  stem of the class name (folder_class); an unknown class has no tokens
std::vector<class_token> class_tokens(std::string_view stem);

/// True if millrace knows the class with this stem.
bool is_known_class(std::string_view stem);

/// Other tokens that a class adds if they are missing. Their names are not in token_names.
std::vector<std::string> class_extra_tokens(std::string_view stem);

}  // namespace millrace::tokenizer::detail
