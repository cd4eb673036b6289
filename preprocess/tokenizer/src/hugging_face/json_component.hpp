// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {

/// A part of a tokenizer.json is not what was expected.
///
/// what() is "PATH: PROBLEM"; whoever knows the file says at which byte PATH lies.
class component_error : public error {
 public:
  component_error(std::string path, const std::string& problem)
      : error(path + ": " + problem), path_(std::move(path)) {}

  /// e.g. `normalizer.normalizers[2].type`
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// An object of a tokenizer.json that describes a component, and where it is. A view: the document
/// outlives it. Every member function throws component_error where the file has something else.
class json_component {
 public:
  json_component(simdjson::dom::element element, std::string path);

  const std::string& path() const noexcept { return path_; }
  /// Its `type`.
  std::string_view type() const noexcept { return type_; }

  bool flag(const char* name) const;
  bool flag_or(const char* name, bool value) const;
  /// Nothing where it is missing or null.
  std::optional<bool> optional_flag(const char* name) const;
  std::string_view text(const char* name) const;
  std::optional<std::string_view> optional_text(const char* name) const;
  /// A text of one character.
  std::uint32_t character(const char* name) const;
  std::size_t size_or(const char* name, std::size_t value) const;
  std::vector<json_component> components(const char* name) const;

  /// `{"String": text}` or `{"Regex": text}`
  struct pattern {
    std::string_view text;
    bool is_regex;
  };
  pattern pattern_of(const char* name) const;

  /// Refuses fields that are neither `type` nor among `names`: a file that has them means more
  /// than is known here.
  void expect_only(std::initializer_list<std::string_view> names) const;

  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void fail_at(const char* name, const std::string& problem) const;

 private:
  std::optional<simdjson::dom::element> find(const char* name) const;
  simdjson::dom::element need(const char* name) const;

  simdjson::dom::object object_;
  std::string path_;
  std::string_view type_;
};

}  // namespace millrace::tokenizer::detail
