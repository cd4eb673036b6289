// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/word_model.hpp"

namespace millrace::tokenizer::detail {

struct unigram_piece {
  std::string_view text;
  double score = 0;  ///< log probability; higher is better
};

/// Cuts a word into the pieces whose scores have the highest sum, as Hugging Face's `Unigram` does:
/// it adds in double precision from the word's start, and on equal sums keeps the piece that begins
/// earliest. A character without a piece scores the lowest score minus 10. Adjacent characters
/// without a piece are joined into one text. This text is looked up again; if it is not in the
/// vocabulary, it becomes byte tokens or, if it cannot, the unknown token.
///
/// SentencePiece itself adds in single precision instead.
///
/// @param pieces         the id of a piece is its index; if two pieces have the same text, the
///                       later one wins
/// @param unknown        id of the unknown piece; if absent, characters without a piece are a fault
std::unique_ptr<const word_model> make_unigram(const std::vector<unigram_piece>& pieces,
                                               std::optional<std::int32_t> unknown,
                                               bool byte_fallback);

}  // namespace millrace::tokenizer::detail
