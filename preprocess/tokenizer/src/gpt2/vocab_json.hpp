// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

struct vocab_entry {
  std::string spelled;  ///< in the byte alphabet, or a special token's own text
  std::int32_t id = 0;
};

/// Reads a GPT-2 `vocab.json`: one JSON object from spelled tokens to ids.
///
/// Stricter than Hugging Face where that guesses: it takes the last of two equal keys, skips a
/// value that is no number, cuts ids to 32 bits. Ids may have gaps and any order, as there.
///
/// A key outside the byte alphabet can never come from text; it is accepted if it is written as
/// special tokens are, `<...>` or `[...]`.
///
/// @return the entries by ascending id; keys and ids are distinct, ids in 0 .. 2^22 - 1.
/// @throws format_error  anything else; the offset is that of the entry at fault, or the byte at
///                       which the text stops being such an object.
std::vector<vocab_entry> parse_vocab_json(std::string_view json);

}  // namespace millrace::tokenizer::detail
