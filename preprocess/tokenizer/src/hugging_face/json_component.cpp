// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_component.hpp"

#include <algorithm>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "json/json_place.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

json_component::json_component(const json_document& document, std::vector<std::size_t> steps,
                               simdjson::dom::element element, std::string path)
    : document_(&document), steps_(std::move(steps)), path_(std::move(path)) {
  if (element.get(object_) != simdjson::SUCCESS) fail("is no object");
  type_ = text("type");
}

void json_component::fail(const std::string& problem) const {
  throw format_error(json_place(document_->text(), steps_), path_ + ": " + problem);
}

void json_component::fail_at(const char* name, const std::string& problem) const {
  throw format_error(json_place(document_->text(), steps_to(name)),
                     path_ + '.' + name + ": " + problem);
}

// Returns the steps to the field `name`. If the field does not exist, returns the steps to the last
// object or field on the way that exists.
std::vector<std::size_t> json_component::steps_to(std::string_view name) const {
  std::vector<std::size_t> steps = steps_;
  simdjson::dom::object inside = object_;
  while (!name.empty()) {
    const std::string_view key = name.substr(0, name.find('.'));
    name.remove_prefix(std::min(key.size() + 1, name.size()));
    simdjson::dom::element value;
    if (inside.at_key(key).get(value) != simdjson::SUCCESS) break;
    std::size_t index = 0;
    for (const simdjson::dom::key_value_pair field : inside) {
      if (field.key == key) break;
      ++index;
    }
    steps.push_back(index);
    if (value.get(inside) != simdjson::SUCCESS) break;
  }
  return steps;
}

std::optional<simdjson::dom::element> json_component::find(const char* name) const {
  simdjson::dom::element found;
  if (object_.at_key(name).get(found) != simdjson::SUCCESS) return std::nullopt;
  return found;
}

simdjson::dom::element json_component::need(const char* name) const {
  const auto found = find(name);
  if (!found) {
    fail((type_.empty() ? "an object" : std::string(type_)) + " without the field " +
         formats::in_quotes(name));
  }
  return *found;
}

bool json_component::flag(const char* name) const {
  bool value = false;
  if (need(name).get(value) != simdjson::SUCCESS) fail_at(name, "is neither true nor false");
  return value;
}

bool json_component::flag_or(const char* name, bool value) const {
  return find(name) ? flag(name) : value;
}

std::optional<bool> json_component::optional_flag(const char* name) const {
  const auto found = find(name);
  if (!found || found->is_null()) return std::nullopt;
  return flag(name);
}

std::string_view json_component::text(const char* name) const {
  std::string_view value;
  if (need(name).get(value) != simdjson::SUCCESS) fail_at(name, "is no string");
  return value;
}

std::optional<std::string_view> json_component::optional_text(const char* name) const {
  const auto found = find(name);
  if (!found || found->is_null()) return std::nullopt;
  return text(name);
}

std::uint32_t json_component::character(const char* name) const {
  const std::string_view value = text(name);
  if (!value.empty()) {
    const code_point point = code_point_at(value, 0);
    if (point.size_bytes == value.size()) return point.value;
  }
  fail_at(name, "is " + formats::in_quotes(value) + ", expected one character");
}

std::size_t json_component::size_or(const char* name, std::size_t value) const {
  const auto found = find(name);
  if (!found) return value;
  std::uint64_t number = 0;
  if (found->get(number) != simdjson::SUCCESS) fail_at(name, "is no number of 0 or more");
  return static_cast<std::size_t>(number);
}

std::vector<json_component> json_component::components(const char* name) const {
  simdjson::dom::array array;
  if (need(name).get(array) != simdjson::SUCCESS) fail_at(name, "is no list");
  std::vector<json_component> parts;
  std::vector<std::size_t> steps = steps_to(name);
  steps.push_back(0);
  for (const simdjson::dom::element part : array) {
    steps.back() = parts.size();
    const std::string index = std::to_string(parts.size());
    parts.push_back(
        json_component(*document_, steps, part, path_ + '.' + name + '[' + index + ']'));
  }
  return parts;
}

json_component::pattern json_component::pattern_of(const char* name) const {
  simdjson::dom::object object;
  if (need(name).get(object) == simdjson::SUCCESS && object.size() == 1) {
    std::string_view text;
    if (object.at_key("String").get(text) == simdjson::SUCCESS) return {text, false};
    if (object.at_key("Regex").get(text) == simdjson::SUCCESS) return {text, true};
  }
  fail_at(name, R"(is no pattern, expected {"String": "..."} or {"Regex": "..."})");
}

void json_component::expect_only(std::initializer_list<std::string_view> names) const {
  for (const simdjson::dom::key_value_pair field : object_) {
    if (field.key == "type" || std::ranges::find(names, field.key) != names.end()) continue;
    fail(std::string(type_) + " with a field " + formats::in_quotes(field.key) +
         ", which is unknown here");
  }
}

}  // namespace millrace::tokenizer::detail
