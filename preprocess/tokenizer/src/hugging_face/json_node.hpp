// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {

/// A parsed JSON text. Its values are valid for the lifetime of this object.
class json_document {
 public:
  /// @throws format_error  `text` is not JSON; the offset is where the text stops being valid.
  explicit json_document(std::string_view text);

  simdjson::dom::element root() const noexcept { return root_; }
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

/// A value of a document, with the path to it, so that an error can report the place of the value.
/// The parent node must outlive this node, unless this node is detached().
class json_node {
 public:
  explicit json_node(const json_document& document)
      : document_(&document), element_(document.root()) {}
  json_node(const json_node& parent, simdjson::dom::element element, std::size_t index)
      : document_(parent.document_), parent_(&parent), index_(index), element_(element) {}

  const json_document& document() const noexcept { return *document_; }
  simdjson::dom::element element() const noexcept { return element_; }
  /// A copy that does not need its parent.
  json_node detached() const;
  /// The steps from the root to this value, for json_place().
  std::vector<std::size_t> steps() const;

  /// @throws format_error  always: with the message `problem` and the offset of this value
  [[noreturn]] void fail(const std::string& problem) const;
  std::size_t offset() const;
  /// The numbers in this value, as spelled in the JSON text.
  std::vector<std::string_view> numbers() const;

  bool is_null() const noexcept { return element_.is_null(); }
  bool is_string() const noexcept { return element_.is_string(); }

  // Each function from object() to number() throws format_error if the value has another type.
  // `name` is for the message.
  simdjson::dom::object object(const char* name) const;
  simdjson::dom::array array(const char* name) const;
  std::string_view string(const char* name) const;
  bool boolean(const char* name) const;
  /// An integer from 0 to `max`.
  std::int64_t integer(const char* name, std::int64_t max) const;
  double number(const char* name) const;

  /// The entry `key` of this object, or std::nullopt if it is absent.
  /// @throws format_error  this value is not an object.
  std::optional<json_node> entry(std::string_view key) const;
  /// Like entry(), but also std::nullopt if the entry is null.
  /// @throws format_error  this value is not an object.
  std::optional<json_node> find(std::string_view key) const;
  /// @throws format_error  the entry is absent, or this value is not an object.
  json_node at(std::string_view key) const;

  bool flag(const char* key, bool otherwise) const;
  std::optional<std::string_view> text(const char* key) const;

 private:
  const json_document* document_;
  const json_node* parent_ = nullptr;
  std::size_t index_ = 0;
  std::vector<std::size_t> steps_;  // of a detached node
  simdjson::dom::element element_;
};

/// Reads the fields of an object that describes a component of a tokenizer.json. The document must
/// outlive this object.
///
/// Every member function throws format_error if the value in the file does not have the expected
/// form. The message is "PATH: PROBLEM", where PATH is, for example,
/// `normalizer.normalizers[2].type`. The offset of the error is the byte where the value at PATH
/// begins.
class json_component {
 public:
  /// @param path  name of `value` for messages
  json_component(const json_node& value, std::string path);

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
  json_node need(const char* name) const;

  json_node value_;
  std::string path_;
  std::string_view type_;
};

/// Parses a JSON number as Hugging Face's tokenizers do. The result is not always the nearest
/// double. The digits are read as a 64-bit integer, and digits that do not fit are dropped. Then
/// the integer is multiplied or divided by powers of ten, with rounding at each step. So a score
/// may differ from the nearest double in the last bit, which can decide between two equally good
/// ways to cut a word.
///
/// @pre `number` is a JSON number
double reference_number(std::string_view number) noexcept;

}  // namespace millrace::tokenizer::detail
