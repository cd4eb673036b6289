// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <simdjson.h>

#include "hugging_face/json_node.hpp"

namespace millrace::tokenizer::detail {

/// An object of a tokenizer.json that describes a component. This is a view: the document must
/// outlive it.
///
/// Every member function throws format_error if the value in the file does not have the expected
/// form. The message is "PATH: PROBLEM", where PATH is, for example,
/// `normalizer.normalizers[2].type`. The offset of the error is the byte where the value at PATH
/// begins.
class json_component {
 public:
  /// @param path  name of `value` for messages
  json_component(const json_node& value, std::string path)
      : json_component(value.document(), value.steps(), value.element(), std::move(path)) {}

  /// The `type` of the component.
  std::string_view type() const noexcept { return type_; }

  bool flag(const char* name) const;
  bool flag_or(const char* name, bool value) const;
  /// The flag, or std::nullopt if it is missing or null.
  std::optional<bool> optional_flag(const char* name) const;
  std::string_view text(const char* name) const;
  std::optional<std::string_view> optional_text(const char* name) const;
  /// The character of a text that must have exactly one character.
  std::uint32_t character(const char* name) const;
  std::size_t size_or(const char* name, std::size_t value) const;
  std::vector<json_component> components(const char* name) const;

  /// A pattern is `{"String": text}` or `{"Regex": text}`.
  struct pattern {
    std::string_view text;
    bool is_regex;
  };
  pattern pattern_of(const char* name) const;

  /// Refuses a field that is neither `type` nor in `names`, because its meaning is not known.
  void expect_only(std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string& problem) const;
  /// Throws an error at the place of a field. `name` may be a path, such as "pattern.Regex".
  [[noreturn]] void fail_at(const char* name, const std::string& problem) const;

 private:
  json_component(const json_document& document, std::vector<std::size_t> steps,
                 simdjson::dom::element element, std::string path);

  std::optional<simdjson::dom::element> find(const char* name) const;
  simdjson::dom::element need(const char* name) const;
  std::vector<std::size_t> steps_to(std::string_view name) const;

  const json_document* document_;
  std::vector<std::size_t> steps_;  // from the root
  simdjson::dom::object object_;
  std::string path_;
  std::string_view type_;
};

}  // namespace millrace::tokenizer::detail
