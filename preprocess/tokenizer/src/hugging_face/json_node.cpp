// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_node.hpp"

#include <algorithm>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "json/json_place.hpp"

namespace millrace::tokenizer::detail {

json_document::json_document(std::string_view text) : text_(text) {
  if (text.empty()) throw format_error(0, "the file is empty, expected a JSON object");
  const auto error = parser_.parse(simdjson::padded_string(text)).get(root_);
  if (!error) return;
  const simdjson::padded_string again(with_floats_for_wide_integers(text));
  if (!parser_.parse(again).get(root_)) return;
  throw format_error(json_end(text), std::string("not JSON: ") + simdjson::error_message(error));
}

std::vector<std::size_t> json_node::steps() const {
  std::vector<std::size_t> steps;
  for (const json_node* value = this; value->parent_ != nullptr; value = value->parent_) {
    steps.push_back(value->index_);
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

std::size_t json_node::offset() const {
  return json_place(document_->text(), steps());
}

std::vector<std::string_view> json_node::numbers() const {
  return json_numbers(document_->text(), steps());
}

void json_node::fail(const std::string& problem) const {
  throw format_error(offset(), problem);
}

simdjson::dom::object json_node::object(const char* name) const {
  if (!element_.is_object()) fail(std::string(name) + " is not an object");
  return element_.get_object().value_unsafe();
}

simdjson::dom::array json_node::array(const char* name) const {
  if (!element_.is_array()) fail(std::string(name) + " is not an array");
  return element_.get_array().value_unsafe();
}

std::string_view json_node::string(const char* name) const {
  if (!element_.is_string()) fail(std::string(name) + " is not a string");
  return element_.get_string().value_unsafe();
}

bool json_node::boolean(const char* name) const {
  if (!element_.is_bool()) fail(std::string(name) + " is neither true nor false");
  return element_.get_bool().value_unsafe();
}

std::int64_t json_node::integer(const char* name, std::int64_t max) const {
  const bool fits = element_.is_int64() && element_.get_int64().value_unsafe() >= 0 &&
                    element_.get_int64().value_unsafe() <= max;
  if (!fits) fail(std::string(name) + " is not an integer of 0.." + std::to_string(max));
  return element_.get_int64().value_unsafe();
}

double json_node::number(const char* name) const {
  if (!element_.is_number()) fail(std::string(name) + " is not a number");
  return element_.get_double().value_unsafe();
}

std::optional<json_node> json_node::find(std::string_view key) const {
  std::size_t index = 0;
  for (const auto [name, value] : object("this")) {
    if (name == key) {
      if (value.is_null()) break;
      return json_node(*this, value, index);
    }
    ++index;
  }
  return std::nullopt;
}

json_node json_node::at(std::string_view key) const {
  if (auto found = find(key)) return *found;
  fail("an entry " + formats::in_quotes(key) + " is missing");
}

bool json_node::flag(const char* key, bool otherwise) const {
  const auto value = find(key);
  return value ? value->boolean(key) : otherwise;
}

std::optional<std::string_view> json_node::text(const char* key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  return value->string(key);
}

}  // namespace millrace::tokenizer::detail
