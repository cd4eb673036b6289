// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/interfaces.hpp"
#include "models/word_models.hpp"
#include "pre_tokenize/pre_tokenizer.hpp"
#include "split/splitters.hpp"

namespace millrace::tokenizer::detail {

/// The parts of a unit_engine.
struct unit_parts {
  /// Cuts raw text into units that `normal` and `words` process independently.
  std::unique_ptr<const word_splitter> units;
  std::unique_ptr<const normalizer> normal;  ///< may be null
  std::unique_ptr<const pre_tokenizer> words;
  std::unique_ptr<const word_model> model;  ///< its ids are at most word_ids::max_id
};

/// Creates an engine for raw text that combines a normalizer, a pre-tokenizer and a model. It looks
/// up the ids of a unit by the raw bytes of the unit. Only new units go through all steps.
///
/// @pre a space before a unit does not change its ids
std::unique_ptr<const section_engine> make_unit_engine(unit_parts parts, engine_tuning tuning = {});

/// Creates the general engine. A pre-tokenizer splits text into words, and a model encodes each
/// word that is not in the word_cache.
///
/// @param words  if null, each section is one word
std::unique_ptr<const section_engine> make_piecewise_engine(
    std::unique_ptr<const pre_tokenizer> words, std::unique_ptr<const word_model> model);

}  // namespace millrace::tokenizer::detail
