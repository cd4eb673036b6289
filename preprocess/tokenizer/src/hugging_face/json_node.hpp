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

/// A JSON text, parsed. What its values point to lives as long as this.
class json_document {
 public:
  /// @throws format_error  it is not JSON; the offset is where it stops being that.
  explicit json_document(std::string_view text);

  simdjson::dom::element root() const noexcept { return root_; }
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

/// A value of a document, and how one came to it: so that what is wrong with it can be said with
/// its place. Outlived by the value that it was taken from.
class json_node {
 public:
  explicit json_node(const json_document& document)
      : document_(&document), element_(document.root()) {}
  json_node(const json_node& parent, simdjson::dom::element element, std::size_t index)
      : document_(parent.document_), parent_(&parent), index_(index), element_(element) {}

  const json_document& document() const noexcept { return *document_; }
  simdjson::dom::element element() const noexcept { return element_; }
  /// From the root to here, as json_place() takes them.
  std::vector<std::size_t> steps() const;

  /// @throws format_error  `problem`, at this value
  [[noreturn]] void fail(const std::string& problem) const;
  std::size_t offset() const;
  /// The numbers in this value, as they are written.
  std::vector<std::string_view> numbers() const;

  bool is_null() const noexcept { return element_.is_null(); }
  bool is_string() const noexcept { return element_.is_string(); }

  // Each throws format_error where the value is of another kind; `name` is for the message.
  simdjson::dom::object object(const char* name) const;
  simdjson::dom::array array(const char* name) const;
  std::string_view string(const char* name) const;
  bool boolean(const char* name) const;
  /// An integer of 0 .. max.
  std::int64_t integer(const char* name, std::int64_t max) const;
  double number(const char* name) const;

  /// The entry of an object, or nothing if it is absent. `null` counts as absent.
  /// @throws format_error  this is no object.
  std::optional<json_node> find(std::string_view key) const;
  /// @throws format_error  it is absent, or this is no object.
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
