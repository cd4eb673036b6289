// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "models/word_models.hpp"

namespace millrace::tokenizer::detail {

struct unigram_piece {
  std::string_view text;
  double score = 0;  ///< log probability; higher is better
};

/// Cuts a word into the pieces whose scores have the highest sum, as Hugging Face's `Unigram` does.
/// Sums are computed in double precision from the start of the word. If two paths to the same place
/// have equal sums, the path whose last piece begins earlier wins. The score of a character without
/// a piece is the lowest score minus 10. Adjacent characters without a piece are joined into one
/// text, which is looked up again. If it is not in the vocabulary, it becomes byte tokens if
/// possible, otherwise the unknown token.
///
/// SentencePiece itself computes the sums in single precision.
///
/// @param pieces         the id of a piece is its index; if two pieces have the same text, the
///                       later one wins
/// @param unknown        id of the unknown piece; if absent, a character without a piece is a fault
std::unique_ptr<const word_model> make_unigram(const std::vector<unigram_piece>& pieces,
                                               std::optional<std::int32_t> unknown,
                                               bool byte_fallback);

}  // namespace millrace::tokenizer::detail
