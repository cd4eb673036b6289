// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

struct vocab_entry {
  std::string spelled;  ///< in the byte alphabet, or the text of a special token
  std::int32_t id = 0;
};

/// Reads a GPT-2 `vocab.json`: one JSON object from spelled tokens to ids.
///
/// Refuses input that Hugging Face only guesses how to read: Hugging Face takes the last of two
/// equal keys, skips a value that is not a number, and truncates ids to 32 bits. As in Hugging
/// Face, ids may have gaps and any order.
///
/// A key outside the byte alphabet can never come from text. It is accepted if it is written like a
/// special token, `<...>` or `[...]`.
///
/// @return the entries by ascending id; keys and ids are distinct, ids in 0 .. 2^22 - 1.
/// @throws format_error  the text is not such an object. The offset is that of the faulty entry, or
///                       of the byte at which the text stops being such an object.
std::vector<vocab_entry> parse_vocab_json(std::string_view json);

}  // namespace millrace::tokenizer::detail
