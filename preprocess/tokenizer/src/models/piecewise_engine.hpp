// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "composed/interfaces.hpp"
#include "models/word_model.hpp"
#include "pre_tokenize/pre_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// Creates the general engine. A pre-tokenizer splits text into words, and a model encodes each
/// word that is not in the word_cache.
///
/// @param words  if null, each section is one word
std::unique_ptr<const section_engine> make_piecewise_engine(
    std::unique_ptr<const pre_tokenizer> words, std::unique_ptr<const word_model> model);

}  // namespace millrace::tokenizer::detail
