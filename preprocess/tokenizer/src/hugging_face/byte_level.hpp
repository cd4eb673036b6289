// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/interfaces.hpp"
#include "hugging_face/json_node.hpp"
#include "hugging_face/read_model.hpp"

namespace millrace::tokenizer::detail {

/// A pre-tokenizer in the usual form for byte-level vocabularies: a sequence of patterns that
/// isolate their matches, then ByteLevel. A word_splitter and a byte-level engine can implement
/// this form faster than the general engine.
struct byte_level_plan {
  /// A step before ByteLevel: a regular expression, or Digits.
  struct step {
    enum class kind { regex, individual_digits, runs_of_digits };
    kind what = kind::regex;
    std::string regex;  ///< empty for digits
  };
  std::vector<step> steps;
  bool add_prefix_space = false;  ///< add a space before every piece that does not begin with one
  bool byte_level_regex = false;  ///< split by GPT-2's pattern after the steps
};

/// Returns the plan of a pre-tokenizer, or std::nullopt if no byte_level_plan can describe it. Does
/// not check whether the regular expressions are supported: the caller must do so.
///
/// @throws format_error  `pre_tokenizer` does not describe a pre-tokenizer
std::optional<byte_level_plan> byte_level_plan_of(const json_node& pre_tokenizer,
                                                  const std::string& path = "pre_tokenizer");

/// Creates the fast engine for a byte-level model with a well-known pattern. Returns null for other
/// models, which need the general engine.
/// @param model  If an engine is returned, the merges and the index of the model have been freed,
///               because they would use as much memory as the engine's copies. The tokens of the
///               model are unchanged.
std::unique_ptr<const section_engine> make_byte_level_engine(model_file& model,
                                                             const byte_level_plan& plan);

/// Returns an engine that adds a space before each section that does not begin with one.
std::unique_ptr<const section_engine> with_prefix_space(
    std::unique_ptr<const section_engine> engine);

/// Returns the first byte that occurs in UTF-8 but whose spelling in the byte alphabet is not a
/// token of `model`. Returns std::nullopt if there is no such byte.
std::optional<unsigned> missing_byte(const model_file& model);

}  // namespace millrace::tokenizer::detail
