// SPDX-License-Identifier: Apache-2.0
#include "schema.hpp"

#include <array>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::parquet::detail {
namespace {

// Annotations. The values are on disk. 0 is no logical type; -1 stands for no converted type.
namespace logical {
constexpr std::int32_t list = 3;
constexpr std::int32_t integer = 10;
}  // namespace logical
namespace converted {
constexpr std::int32_t none = -1;
constexpr std::int32_t list = 3;
constexpr std::int32_t uint8 = 11;
constexpr std::int32_t uint64 = 14;
}  // namespace converted

/// The name of an annotation whose values cannot be read, or an empty text.
std::string_view refused_logical(std::int32_t annotation) {
  constexpr std::array names = {
      "", "", "MAP", "LIST", "",     "DECIMAL", "DATE",    "TIME",     "TIMESTAMP", "INTERVAL",
      "", "", "",    "BSON", "UUID", "FLOAT16", "VARIANT", "GEOMETRY", "GEOGRAPHY"};
  if (annotation < 0 || static_cast<std::size_t>(annotation) >= names.size()) {
    return "a logical type that this version does not know";
  }
  return names[static_cast<std::size_t>(annotation)];
}

std::string_view refused_converted(std::int32_t annotation) {
  constexpr std::array names = {"",
                                "MAP",
                                "MAP_KEY_VALUE",
                                "LIST",
                                "",
                                "DECIMAL",
                                "DATE",
                                "TIME_MILLIS",
                                "TIME_MICROS",
                                "TIMESTAMP_MILLIS",
                                "TIMESTAMP_MICROS",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "",
                                "BSON",
                                "INTERVAL"};
  if (annotation == converted::none) return {};
  if (annotation < 0 || static_cast<std::size_t>(annotation) >= names.size()) {
    return "a converted type that this version does not know";
  }
  return names[static_cast<std::size_t>(annotation)];
}

class schema_builder {
 public:
  schema_builder(const std::vector<schema_element>& elements, std::uint64_t offset)
      : elements_(elements), offset_(offset) {}

  schema_tree build() {
    if (elements_.empty()) fail("the schema is empty");
    schema_tree tree;
    const schema_element& root = elements_[next_++];
    tree.root.form = node::shape::structure;
    add_fields(root, levels{}, 0, tree.root);
    if (next_ != elements_.size()) fail("the schema has elements outside of its tree");
    tree.columns = columns_;
    return tree;
  }

 private:
  struct levels {
    std::uint8_t definition = 0;
    std::uint8_t repetition = 0;
  };

  [[noreturn]] void fail(const std::string& problem) const {
    throw format_error(offset_, problem + "; the file is damaged");
  }

  const schema_element& take(int depth) {
    if (next_ == elements_.size()) fail("the schema has fewer elements than its groups need");
    if (depth > most_schema_depth) {
      fail("the schema is nested deeper than " + std::to_string(most_schema_depth) + " levels");
    }
    return elements_[next_++];
  }

  void add_fields(const schema_element& group, levels at, int depth, node& to) {
    if (group.children < 0) fail("a group of the schema has fewer than 0 columns");
    for (std::int32_t i = 0; i < group.children; ++i) {
      to.children.push_back(any(at, depth + 1));
    }
  }

  /// The next element with everything below it.
  node any(levels at, int depth) {
    const schema_element& element = take(depth);
    if (!element.repeats || *element.repeats < repetition::required ||
        *element.repeats > repetition::repeated) {
      fail("element " + formats::in_quotes(element.name) +
           " of the schema has no valid repetition");
    }
    if (*element.repeats == repetition::repeated) {
      // Outside of a group LIST: a list, never null, of elements that are never null.
      node list;
      list.name = element.name;
      list.form = node::shape::list;
      list.present_level = at.definition++;
      list.repetition_level = ++at.repetition;
      list.element_level = at.definition;
      list.children.push_back(value(element, at, depth));
      return list;
    }
    node made;
    if (*element.repeats == repetition::optional) ++at.definition;
    made = value(element, at, depth);
    made.is_optional = *element.repeats == repetition::optional;
    return made;
  }

  /// The value of an element, without its own repetition.
  node value(const schema_element& element, levels at, int depth) {
    node made;
    made.name = element.name;
    made.present_level = at.definition;
    if (element.type) {
      if (element.children != 0) {
        fail("column " + formats::in_quotes(element.name) + " of the schema has columns in it");
      }
      leaf(element, made);
    } else if (is_list(element)) {
      list(element, at, depth, made);
    } else {
      made.form = node::shape::structure;
      const std::int32_t old = element.converted.value_or(converted::none);
      const std::string_view refused =
          element.logical != 0 ? refused_logical(element.logical) : refused_converted(old);
      add_fields(element, at, depth, made);
      if (!refused.empty()) {
        made.refusal = "is of type " + std::string(refused);
      } else if (made.children.empty()) {
        made.refusal = "is a struct without fields";
      }
    }
    return made;
  }

  static bool is_list(const schema_element& element) {
    return element.logical != 0 ? element.logical == logical::list
                                : element.converted == converted::list;
  }

  /// A group LIST, in the form of today or in one of the older forms.
  void list(const schema_element& group, levels at, int depth, node& to) {
    to.form = node::shape::list;
    const bool is_known = group.children == 1 && next_ != elements_.size() &&
                          elements_[next_].repeats == repetition::repeated;
    if (!is_known) {
      to.form = node::shape::structure;
      add_fields(group, at, depth, to);
      to.refusal = "is a LIST without exactly one repeated field in it";
      return;
    }
    const schema_element& repeated = take(depth + 1);
    ++at.definition;
    ++at.repetition;
    to.repetition_level = at.repetition;
    to.element_level = at.definition;
    to.children.push_back(is_element(repeated, group.name) ? value(repeated, at, depth + 1)
                                                           : any(at, depth + 2));
  }

  /// Tells whether the repeated field of a group LIST is the element, by the rules for backward
  /// compatibility in the specification, or a group around the element.
  bool is_element(const schema_element& repeated, const std::string& list_name) const {
    if (repeated.type || repeated.children != 1 || next_ == elements_.size()) return true;
    if (elements_[next_].repeats == repetition::repeated) return true;
    return repeated.name == "array" || repeated.name == list_name + "_tuple";
  }

  void leaf(const schema_element& element, node& to) {
    to.form = node::shape::leaf;
    to.column = columns_++;
    to.type = *element.type;
    const std::int32_t old = element.converted.value_or(converted::none);
    const std::string_view refused =
        element.logical != 0 ? refused_logical(element.logical) : refused_converted(old);
    if (!refused.empty()) to.refusal = "is of type " + std::string(refused);
    const bool is_unsigned =
        element.logical == logical::integer
            ? !element.integer_is_signed
            : element.logical == 0 && old >= converted::uint8 && old <= converted::uint64;
    switch (to.type) {
      case physical::boolean:
        to.kind = value_kind::boolean;
        return;
      case physical::int32:
      case physical::int64:
        to.kind = is_unsigned ? value_kind::unsigned_integer : value_kind::signed_integer;
        return;
      case physical::float32:
      case physical::float64:
        to.kind = value_kind::floating;
        return;
      case physical::byte_array:
        to.kind = value_kind::text;
        return;
      case physical::int96:
        to.refusal = "is of type INT96";
        return;
      case physical::fixed_len_byte_array:
        if (refused.empty()) to.refusal = "is of type FIXED_LEN_BYTE_ARRAY";
        return;
    }
    to.refusal = "is of a physical type that this version does not know";
  }

  const std::vector<schema_element>& elements_;
  std::uint64_t offset_;
  std::size_t next_ = 0;
  std::size_t columns_ = 0;
};

}  // namespace

schema_tree build_schema(const std::vector<schema_element>& elements, std::uint64_t offset) {
  return schema_builder(elements, offset).build();
}

}  // namespace millrace::parquet::detail
