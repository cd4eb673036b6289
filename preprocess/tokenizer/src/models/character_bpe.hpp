// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpe/merge_table.hpp"
#include "models/vocabulary.hpp"
#include "models/word_model.hpp"

namespace millrace::tokenizer::detail {

struct character_bpe_options {
  std::string prefix;                   ///< of every character but a word's first
  std::string suffix;                   ///< of a word's last character
  std::optional<std::int32_t> unknown;  ///< of characters without a token; else they vanish
  bool unknown_is_fault = false;        ///< or are a fault
  bool fuse_unknown = false;            ///< neighbours that are unknown are one unknown token
  bool byte_fallback = false;      ///< unknown characters are byte tokens, if all of them exist
  bool whole_words_first = false;  ///< a word that is a token is that token
};

/// Byte-pair encoding that starts from characters, as Hugging Face's `BPE` does: each character,
/// with the prefix and the suffix, is a token, or bytes, or unknown; then neighbours merge.
///
/// An unknown token waits for a character that has a token of its own: bytes of a character that
/// falls back go before it, as there.
///
/// @param merges  in order of rank, as merge_table takes them
std::unique_ptr<const word_model> make_character_bpe(std::unique_ptr<const vocabulary> tokens,
                                                     const std::vector<merge_rule>& merges,
                                                     character_bpe_options options);

}  // namespace millrace::tokenizer::detail
