// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "composed/interfaces.hpp"
#include "models/word_model.hpp"
#include "pre_tokenize/pre_tokenizer.hpp"
#include "split/word_splitter.hpp"

namespace millrace::tokenizer::detail {

/// What unit_engine is made of.
struct unit_parts {
  /// Cuts raw text into units that the two below treat each by itself.
  std::unique_ptr<const word_splitter> units;
  std::unique_ptr<const normalizer> normal;  ///< null: none
  std::unique_ptr<const pre_tokenizer> words;
  std::unique_ptr<const word_model> model;  ///< of ids up to word_ids::max_id
};

/// Normalizer, pre-tokenizer and model in one, for raw text: a unit's ids are looked up by its
/// bytes as they stand there, and only those that are new go the whole way.
///
/// @pre a space in front of a unit changes nothing
std::unique_ptr<const section_engine> make_unit_engine(unit_parts parts, engine_tuning tuning = {});

}  // namespace millrace::tokenizer::detail
