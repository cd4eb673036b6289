// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpe/merge_table.hpp"
#include "models/vocabulary.hpp"
#include "models/word_models.hpp"

namespace millrace::tokenizer::detail {

struct character_bpe_options {
  std::string prefix;                   ///< added to every character except a word's first
  std::string suffix;                   ///< added to a word's last character
  std::optional<std::int32_t> unknown;  ///< for characters without a token; if absent, drop them
  bool unknown_is_fault = false;        ///< characters without a token are a fault
  bool fuse_unknown = false;            ///< adjacent unknown characters become one unknown token
  bool byte_fallback = false;      ///< an unknown character becomes its byte tokens if all exist
  bool whole_words_first = false;  ///< a word that is a token becomes that token
};

/// Byte-pair encoding that starts from characters, like Hugging Face's `BPE`. First, the prefix and
/// the suffix are added to the characters. Then each character becomes its token, byte tokens or
/// the unknown token. Finally, adjacent tokens merge.
///
/// As in Hugging Face, an unknown token is written late: before the next character that has its own
/// token, before the next unknown token, or at the end of the word. If the characters in between
/// become byte tokens, these byte tokens precede the unknown token.
///
/// @param merges  in order of rank, as for merge_table
std::unique_ptr<const word_model> make_character_bpe(std::unique_ptr<const vocabulary> tokens,
                                                     const std::vector<merge_rule>& merges,
                                                     character_bpe_options options);

}  // namespace millrace::tokenizer::detail
