// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "models/vocabulary.hpp"
#include "models/word_model.hpp"

namespace millrace::tokenizer::detail {

/// Each word is a token, or the unknown token.
///
/// @param unknown  stands for words outside the vocabulary; without it such a word is a fault
std::unique_ptr<const word_model> make_word_level(std::unique_ptr<const vocabulary> words,
                                                  std::optional<std::int32_t> unknown);

}  // namespace millrace::tokenizer::detail
