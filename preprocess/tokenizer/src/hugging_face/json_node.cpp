// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_node.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

#include "json/json_place.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

json_document::json_document(std::string_view text) : text_(text) {
  if (text.empty()) throw format_error(0, "the file is empty, expected a JSON object");
  const auto error = parser_.parse(simdjson::padded_string(text)).get(root_);
  if (!error) return;
  const simdjson::padded_string again(with_floats_for_wide_integers(text));
  if (!parser_.parse(again).get(root_)) return;
  throw format_error(json_end(text), std::string("not JSON: ") + simdjson::error_message(error));
}

json_node json_node::detached() const {
  json_node copy = *this;
  copy.steps_ = steps();
  copy.parent_ = nullptr;
  return copy;
}

std::vector<std::size_t> json_node::steps() const {
  std::vector<std::size_t> steps;
  const json_node* value = this;
  for (; value->parent_ != nullptr; value = value->parent_) steps.push_back(value->index_);
  steps.insert(steps.end(), value->steps_.rbegin(), value->steps_.rend());
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

std::optional<json_node> json_node::entry(std::string_view key) const {
  std::size_t index = 0;
  for (const auto [name, value] : object("this")) {
    if (name == key) return json_node(*this, value, index);
    ++index;
  }
  return std::nullopt;
}

std::optional<json_node> json_node::find(std::string_view key) const {
  auto found = entry(key);
  if (found && found->is_null()) return std::nullopt;
  return found;
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

json_component::json_component(const json_node& value, std::string path)
    : value_(value.detached()), path_(std::move(path)) {
  if (!value_.element().is_object()) fail("is not an object");
  type_ = text("type");
}

void json_component::fail(const std::string& problem) const {
  value_.fail(path_ + ": " + problem);
}

namespace {

// Returns the offset of the entry at `path`, such as "pattern.Regex". If the path does not exist in
// full, returns the offset of the last value on the path that exists.
std::size_t offset_of(const json_node& value, std::string_view path) {
  if (path.empty() || !value.element().is_object()) return value.offset();
  const std::string_view key = path.substr(0, path.find('.'));
  path.remove_prefix(std::min(key.size() + 1, path.size()));
  const auto entry = value.entry(key);
  return entry ? offset_of(*entry, path) : value.offset();
}

}  // namespace

void json_component::fail_at(const char* name, const std::string& problem) const {
  throw format_error(offset_of(value_, name), path_ + '.' + name + ": " + problem);
}

json_node json_component::need(const char* name) const {
  if (auto found = value_.entry(name)) return *found;
  fail((type_.empty() ? "an object" : std::string(type_)) + " without the field " +
       formats::in_quotes(name));
}

bool json_component::flag(const char* name) const {
  const json_node value = need(name);
  if (!value.element().is_bool()) fail_at(name, "is neither true nor false");
  return value.boolean(name);
}

bool json_component::flag_or(const char* name, bool value) const {
  return value_.entry(name) ? flag(name) : value;
}

std::optional<bool> json_component::optional_flag(const char* name) const {
  if (!value_.find(name)) return std::nullopt;
  return flag(name);
}

std::string_view json_component::text(const char* name) const {
  const json_node value = need(name);
  if (!value.is_string()) fail_at(name, "is not a string");
  return value.string(name);
}

std::optional<std::string_view> json_component::optional_text(const char* name) const {
  if (!value_.find(name)) return std::nullopt;
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
  const auto found = value_.entry(name);
  if (!found) return value;
  std::uint64_t number = 0;
  if (found->element().get(number) != simdjson::SUCCESS)
    fail_at(name, "is not a number of 0 or more");
  return static_cast<std::size_t>(number);
}

std::vector<json_component> json_component::components(const char* name) const {
  const json_node list = need(name);
  if (!list.element().is_array()) fail_at(name, "is not a list");
  std::vector<json_component> parts;
  for (const simdjson::dom::element part : list.array(name)) {
    const std::string index = std::to_string(parts.size());
    parts.emplace_back(json_node(list, part, parts.size()), path_ + '.' + name + '[' + index + ']');
  }
  return parts;
}

json_component::pattern json_component::pattern_of(const char* name) const {
  simdjson::dom::object object;
  if (need(name).element().get(object) == simdjson::SUCCESS && object.size() == 1) {
    std::string_view text;
    if (object.at_key("String").get(text) == simdjson::SUCCESS) return {text, false};
    if (object.at_key("Regex").get(text) == simdjson::SUCCESS) return {text, true};
  }
  fail_at(name, R"(is not a pattern, expected {"String": "..."} or {"Regex": "..."})");
}

void json_component::expect_only(std::initializer_list<std::string_view> names) const {
  for (const simdjson::dom::key_value_pair field : value_.object("this")) {
    if (field.key == "type" || std::ranges::find(names, field.key) != names.end()) continue;
    fail(std::string(type_) + " with a field " + formats::in_quotes(field.key) +
         ", which is unknown here");
  }
}

namespace {

constexpr int largest_power = 308;
constexpr std::int64_t exponent_limit = 1000000000;  // beyond this, every value is 0 or infinite

double power_of_ten(std::int64_t exponent) noexcept {
  std::array<char, 8> text{'1', 'e'};
  const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), exponent).ptr;
  double value = 0;
  std::from_chars(text.data(), end, value);
  return value;
}

double scaled(double value, std::int64_t exponent) noexcept {
  while (exponent < -largest_power && value != 0) {
    value /= power_of_ten(largest_power);
    exponent += largest_power;
  }
  if (value == 0) return value;
  if (exponent > largest_power) return std::numeric_limits<double>::infinity();
  return exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
}

bool is_digit(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

}  // namespace

double reference_number(std::string_view number) noexcept {
  const bool negative = number.starts_with('-');
  std::size_t at = negative ? 1 : 0;
  std::uint64_t digits = 0;
  std::int64_t exponent = 0;
  bool full = false;
  const auto take = [&](char c) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    full = full || digits > most / 10 || digits * 10 > most - digit;
    if (!full) digits = digits * 10 + digit;
  };
  for (; is_digit(number, at); ++at) {
    take(number[at]);
    exponent += full;
  }
  if (at < number.size() && number[at] == '.') {
    full = false;  // use a fraction digit that fits, even if an integer digit did not
    for (++at; is_digit(number, at); ++at) {
      take(number[at]);
      exponent -= !full;
    }
  }
  if (at < number.size()) {  // an 'e' or 'E' follows
    ++at;
    const bool down = number.substr(at).starts_with('-');
    if (down || number.substr(at).starts_with('+')) ++at;
    std::int64_t given = 0;
    for (; is_digit(number, at); ++at) {
      given = std::min(given * 10 + (number[at] - '0'), exponent_limit);
    }
    exponent += down ? -given : given;
  }
  const double value = scaled(static_cast<double>(digits), exponent);
  return negative ? -value : value;
}

}  // namespace millrace::tokenizer::detail
