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
  double score = 0;  ///< a logarithm of its probability; the higher, the better
};

/// Of all ways to cut a word into pieces, the one whose scores have the highest sum, as Hugging
/// Face's `Unigram` computes it: sums in double, from the word's start; of equal sums the one that
/// begins earliest stays. A character without a piece costs the lowest score less 10; neighbours
/// of that kind are one piece, which is looked up once more, then spelled in bytes, then unknown.
///
/// SentencePiece's own arithmetic is another (float).
///
/// @param pieces         their ids are their places; of two with one text the later counts
/// @param unknown        id of the unknown piece; without it such characters are a fault
std::unique_ptr<const word_model> make_unigram(const std::vector<unigram_piece>& pieces,
                                               std::optional<std::int32_t> unknown,
                                               bool byte_fallback);

}  // namespace millrace::tokenizer::detail
