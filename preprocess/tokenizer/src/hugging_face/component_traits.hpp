// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <optional>
#include <string_view>

#include "hugging_face/json_node.hpp"
#include "split/splitters.hpp"

/// Properties of a normalizer and a pre-tokenizer that a tokenizer needs to know before it builds
/// them.
namespace millrace::tokenizer::detail {

/// Returns the pattern that cuts raw text into units which the normalizer and the pre-tokenizer of
/// a tokenizer.json process independently (bert_matcher explains why). A unit_engine can then use
/// these components. Such a pattern exists for BERT's components, and for components that do not
/// look beyond the next white space. For other components, returns std::nullopt.
///
/// @param root  root of a file whose components have been read and so are valid
std::optional<pattern> raw_units_of(const json_node& root);

/// A Metaspace whose prepend_scheme is "first" treats a piece differently if it is at the beginning
/// of the text. Hugging Face tests this by comparing the offset of the piece in the original text
/// with 0. A normalizer can change which pieces have offset 0. If there is no such Metaspace,
/// may_move_the_start() and may_split_the_start() return false.

/// True if the first piece might have an offset other than 0, because the normalizer removes
/// characters or replaces several characters at once. But if the replacement already begins with
/// the text that the Metaspace prepends, the offset does not matter, and the result is false.
bool may_move_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

/// True if the second piece might also have offset 0. This can happen if the normalizer replaces
/// one character with several characters, and an added token matches the first of the new
/// characters.
bool may_split_the_start(simdjson::dom::element normalizer, simdjson::dom::element pre_tokenizer);

/// True if `is` returns true for any component in `value`, which is a component or a list of
/// components. Visits components in the order in which they apply, and visits a Sequence before its
/// parts.
/// @param is  takes a simdjson::dom::object
template <class Is>
bool any_component(simdjson::dom::element value, const Is& is) {
  simdjson::dom::array list;
  if (value.get(list) == simdjson::SUCCESS) {
    for (const simdjson::dom::element each : list) {
      if (any_component(each, is)) return true;
    }
    return false;
  }
  simdjson::dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return false;
  if (is(object)) return true;
  for (const auto [key, each] : object) {
    if (each.is_array() && any_component(each, is)) return true;
  }
  return false;
}

/// The text of the entry `key`, or an empty text if the entry is missing or is not a text.
inline std::string_view text_in(const simdjson::dom::object& component, const char* key) {
  std::string_view text;
  return component[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

}  // namespace millrace::tokenizer::detail
