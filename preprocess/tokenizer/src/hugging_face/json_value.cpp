// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_value.hpp"

#include <algorithm>

#include <millrace/error.hpp>

#include "json/json_place.hpp"
#include "json/wide_integers.hpp"
#include "messages/in_quotes.hpp"

namespace millrace::tokenizer::detail {

json_document::json_document(std::string_view text) : text_(text) {
  if (text.empty()) throw format_error(0, "the file is empty, expected a JSON object");
  const auto error = parser_.parse(simdjson::padded_string(text)).get(root_);
  if (!error) return;
  const simdjson::padded_string again(with_floats_for_wide_integers(text));
  if (!parser_.parse(again).get(root_)) return;
  throw format_error(json_end(text), std::string("not JSON: ") + simdjson::error_message(error));
}

std::vector<std::size_t> json_value::steps() const {
  std::vector<std::size_t> steps;
  for (const json_value* value = this; value->parent_ != nullptr; value = value->parent_) {
    steps.push_back(value->index_);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::size_t json_value::offset() const {
  return json_place(document_->text(), steps());
}

std::vector<std::string_view> json_value::numbers() const {
  return json_numbers(document_->text(), steps());
}

void json_value::fail(const std::string& problem) const {
  throw format_error(offset(), problem);
}

simdjson::dom::object json_value::object(const char* name) const {
  if (!element_.is_object()) fail(std::string(name) + " is not an object");
  return element_.get_object().value_unsafe();
}

simdjson::dom::array json_value::array(const char* name) const {
  if (!element_.is_array()) fail(std::string(name) + " is not an array");
  return element_.get_array().value_unsafe();
}

std::string_view json_value::string(const char* name) const {
  if (!element_.is_string()) fail(std::string(name) + " is not a string");
  return element_.get_string().value_unsafe();
}

bool json_value::boolean(const char* name) const {
  if (!element_.is_bool()) fail(std::string(name) + " is neither true nor false");
  return element_.get_bool().value_unsafe();
}

std::int64_t json_value::integer(const char* name, std::int64_t max) const {
  const bool fits = element_.is_int64() && element_.get_int64().value_unsafe() >= 0 &&
                    element_.get_int64().value_unsafe() <= max;
  if (!fits) fail(std::string(name) + " is not an integer of 0.." + std::to_string(max));
  return element_.get_int64().value_unsafe();
}

double json_value::number(const char* name) const {
  if (!element_.is_number()) fail(std::string(name) + " is not a number");
  return element_.get_double().value_unsafe();
}

std::optional<json_value> json_value::find(std::string_view key) const {
  std::size_t index = 0;
  for (const auto [name, value] : object("this")) {
    if (name == key) {
      if (value.is_null()) break;
      return json_value(*this, value, index);
    }
    ++index;
  }
  return std::nullopt;
}

json_value json_value::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  fail("an entry " + in_quotes(key) + " is missing");
}

bool json_value::flag(const char* key, bool otherwise) const {
  const auto value = find(key);
  return value ? value->boolean(key) : otherwise;
}

std::optional<std::string_view> json_value::text(const char* key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  return value->string(key);
}

}  // namespace millrace::tokenizer::detail
