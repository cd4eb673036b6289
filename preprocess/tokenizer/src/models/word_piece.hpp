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
  std::string prefix = "##";                  ///< of tokens that continue a word
  std::size_t max_characters_per_word = 100;  ///< longer words are unknown
  std::optional<std::int32_t> unknown;        ///< of words that no pieces make; else a fault
};

/// A word is the longest token that begins it, then the longest of what is left, and so on; if
/// that fails anywhere the whole word is unknown.
///
/// Time grows as length times longest token at worst (piece_table).
std::unique_ptr<const word_model> make_word_piece(std::unique_ptr<const vocabulary> pieces,
                                                  word_piece_options options);

}  // namespace millrace::tokenizer::detail
