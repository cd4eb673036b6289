// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <simdjson.h>

namespace millrace::tokenizer::detail {

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
