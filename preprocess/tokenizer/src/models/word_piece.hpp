// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "models/vocabulary.hpp"
#include "models/word_model.hpp"

namespace millrace::tokenizer::detail {

struct word_piece_options {
  std::string prefix = "##";                  ///< marks tokens that continue a word
  std::size_t max_characters_per_word = 100;  ///< longer words are unknown
  std::optional<std::int32_t> unknown;  ///< for words without a token sequence; if absent, a fault
};

/// Encodes a word as the longest token at its beginning, then the longest token at the beginning of
/// the rest, and so on. If no token matches at some place, the whole word is unknown.
///
/// In the worst case, the time is proportional to the length of the word times the length of the
/// longest token (piece_table).
std::unique_ptr<const word_model> make_word_piece(std::unique_ptr<const vocabulary> pieces,
                                                  word_piece_options options);

}  // namespace millrace::tokenizer::detail
