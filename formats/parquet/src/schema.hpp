// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "metadata.hpp"

namespace millrace::parquet::detail {

/// What the values of a leaf are in JSON.
enum class value_kind : std::uint8_t { boolean, signed_integer, unsigned_integer, floating, text };

/// A node of the schema, with repeated fields turned into lists.
///
/// Definition level: how many optional or repeated fields on the path to a value are there.
/// Repetition level: which list an entry continues; 0 starts a row.
struct node {
  enum class shape : std::uint8_t { leaf, structure, list };

  std::string name;
  shape form = shape::leaf;
  bool is_optional = false;
  std::uint8_t present_level = 0;     // definition level from which the value is not null
  std::uint8_t repetition_level = 0;  // of a list: the level that continues it
  std::uint8_t element_level = 0;     // of a list: definition level from which it has an element
  std::string refusal;                // why the node cannot be read, or empty
  // Of leaves.
  std::size_t column = 0;  // its number among all leaves, and so among the columns of a row group
  physical type{};
  value_kind kind{};
  // Of structs the fields, of lists the element.
  std::vector<node> children;
};

/// Levels of a schema. Bounds recursion, and definition levels by twice as many.
inline constexpr int most_schema_depth = 64;

/// Builds the tree of a schema. A node that cannot be read is kept, with the reason.
///
/// @param offset  position of the footer in the file, for messages
/// @throws format_error  (without a path) the elements do not form a tree
struct schema_tree {
  node root;
  std::size_t columns = 0;
};
schema_tree build_schema(const std::vector<schema_element>& elements, std::uint64_t offset);

}  // namespace millrace::parquet::detail
