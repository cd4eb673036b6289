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
  /// @throws format_error  `text` is not JSON; the offset is where it stops being valid.
  explicit json_document(std::string_view text);

  simdjson::dom::element root() const noexcept { return root_; }
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

/// A value of a document, with the path to it, so that an error can report the place of the value.
/// The parent node must outlive this node.
class json_node {
 public:
  explicit json_node(const json_document& document)
      : document_(&document), element_(document.root()) {}
  json_node(const json_node& parent, simdjson::dom::element element, std::size_t index)
      : document_(parent.document_), parent_(&parent), index_(index), element_(element) {}

  const json_document& document() const noexcept { return *document_; }
  simdjson::dom::element element() const noexcept { return element_; }
  /// The steps from the root to this value, for json_place().
  std::vector<std::size_t> steps() const;

  /// @throws format_error  always: with the message `problem` and the offset of this value
  [[noreturn]] void fail(const std::string& problem) const;
  std::size_t offset() const;
  /// The numbers in this value, as spelled in the JSON text.
  std::vector<std::string_view> numbers() const;

  bool is_null() const noexcept { return element_.is_null(); }
  bool is_string() const noexcept { return element_.is_string(); }

  // Each of these throws format_error if the value has another type. `name` is for the message.
  simdjson::dom::object object(const char* name) const;
  simdjson::dom::array array(const char* name) const;
  std::string_view string(const char* name) const;
  bool boolean(const char* name) const;
  /// An integer from 0 to `max`.
  std::int64_t integer(const char* name, std::int64_t max) const;
  double number(const char* name) const;

  /// The entry `key` of this object, or std::nullopt if it is absent or null.
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
  simdjson::dom::element element_;
};

}  // namespace millrace::tokenizer::detail
