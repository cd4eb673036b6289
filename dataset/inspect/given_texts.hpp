// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

namespace millrace::inspect {

/// Texts to look for, as ids.
struct given_texts {
  std::vector<std::string>
      names;  ///< "test.jsonl, line 3" or "data/test_text_document, document 3"
  std::vector<std::vector<std::int64_t>> ids;
};

/// Reads texts. A word is one of:
///
/// - a dataset that exists, as `dataset_prefixes` accepts it: each of its documents is a text;
/// - a file whose name ends in .jsonl or .json: the member "text" of each line is a text;
/// - any other file: each line is a text.
///
/// @param tokenizer  null if it is unknown; required for files
/// @throws config_error  a file needs a tokenizer, or there is no text
/// @throws io_error, format_error  a file cannot be read, or a line is no JSON object with a text
given_texts read_texts(const std::vector<std::string>& words,
                       const tokenizer::tokenizer* tokenizer);

}  // namespace millrace::inspect
