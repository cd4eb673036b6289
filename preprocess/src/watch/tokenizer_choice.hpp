// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <millrace/command/text.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::preprocess {

/// The tokenizer that a run uses, for its summary.
struct tokenizer_choice {
  std::string type;                ///< name in `--tokenizer-type`
  std::vector<std::string> files;  ///< files and folders, as given by the user
};

inline tokenizer_choice choice_of(const tokenizer::tokenizer_options& options) {
  tokenizer_choice choice{.type = options.type, .files = {}};
  for (const std::filesystem::path* path :
       {&options.model, &options.vocab_file, &options.merge_file}) {
    if (!path->empty()) choice.files.push_back(path->string());
  }
  return choice;
}

/// Returns a text such as "GPT2BPETokenizer, vocab.json, merges.txt".
inline std::string text_of(const tokenizer_choice& choice) {
  std::string text = choice.type;
  for (const std::string& file : choice.files) text += ", " + command::one_line(file);
  return text;
}

}  // namespace millrace::preprocess
