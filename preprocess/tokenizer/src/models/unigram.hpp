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
/// earliest. A character without a piece scores the lowest score minus 10. Adjacent characters of
/// that kind form one piece: it is looked up again, otherwise becomes byte tokens, otherwise
/// unknown.
///
/// SentencePiece itself computes in float instead.
///
/// @param pieces         ids are indexes; if two pieces have the same text, the later one wins
/// @param unknown        id of the unknown piece; if absent, such characters are a fault
std::unique_ptr<const word_model> make_unigram(const std::vector<unigram_piece>& pieces,
                                               std::optional<std::int32_t> unknown,
                                               bool byte_fallback);

}  // namespace millrace::tokenizer::detail
