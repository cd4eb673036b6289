// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "models/vocabulary.hpp"
#include "models/word_model.hpp"

namespace millrace::tokenizer::detail {

/// Encodes each word as one token, or as the unknown token.
///
/// @param unknown  id for words outside the vocabulary; if absent, such a word is a fault
std::unique_ptr<const word_model> make_word_level(std::unique_ptr<const vocabulary> words,
                                                  std::optional<std::int32_t> unknown);

}  // namespace millrace::tokenizer::detail
