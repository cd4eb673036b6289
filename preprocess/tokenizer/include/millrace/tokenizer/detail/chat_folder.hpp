// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace millrace::tokenizer {

/// What the folder of a Hugging Face tokenizer says of conversations.
struct chat_folder {
  /// The control tokens that have names, such as ("bos_token", "<s>"). transformers passes them to
  /// chat templates.
  std::vector<std::pair<std::string, std::string>> named_tokens;
  /// The texts of all special tokens.
  std::vector<std::string> special_tokens;

  struct named_template {
    std::string name;  ///< "default" if the folder has only one
    std::filesystem::path path;
    std::string source;
  };
  /// The chat templates. As in transformers, those of chat_template.jinja and
  /// additional_chat_templates/NAME.jinja count, and that of tokenizer_config.json only if there
  /// are no such files.
  std::vector<named_template> templates;

  /// The template with this name, or null.
  const named_template* find(const std::string& name) const noexcept;
};

/// Reads the folder of a `--tokenizer-model`.
///
/// @throws config_error  `folder` is not a folder with a tokenizer.json
/// @throws io_error, format_error  a file cannot be read, or is not what it should be
chat_folder read_chat_folder(const std::filesystem::path& folder);

}  // namespace millrace::tokenizer
