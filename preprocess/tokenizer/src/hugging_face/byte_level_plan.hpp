// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// A pre-tokenizer of the form that byte-level vocabularies have: patterns that isolate their
/// matches, one after another, and ByteLevel at the end. Such a one may be done by a word_splitter
/// and an engine that works on bytes, without the general pieces.
struct byte_level_plan {
  /// A step before ByteLevel: a regular expression, or Digits.
  struct step {
    enum class kind { regex, individual_digits, runs_of_digits };
    kind what = kind::regex;
    std::string regex;  ///< empty for digits
  };
  std::vector<step> steps;
  bool add_prefix_space = false;  ///< to every piece of the steps that does not begin with one
  bool byte_level_regex = false;  ///< GPT-2's pattern, after the steps
};

/// The plan of a pre-tokenizer that has this form, or nothing. It is the form alone that counts:
/// whether the regular expressions can be honoured is for whoever takes the plan.
///
/// @throws format_error  what is no description of a pre-tokenizer
std::optional<byte_level_plan> byte_level_plan_of(const json_node& pre_tokenizer,
                                                  const std::string& path = "pre_tokenizer");

}  // namespace millrace::tokenizer::detail
