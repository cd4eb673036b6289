// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/parquet/file.hpp>

#include "metadata.hpp"
#include "schema.hpp"

namespace millrace::parquet::detail {

struct file_contents {
  std::filesystem::path path;
  io::unique_fd fd;
  std::uint64_t size_bytes = 0;
  std::uint64_t footer_offset = 0;  // pages end before it
  std::uint64_t rows = 0;
  file_metadata metadata;
  schema_tree schema;
  std::vector<file::row_group> row_groups;
};

/// A selected leaf.
struct selected_leaf {
  std::size_t column = 0;  // its number in the file
  std::string name;        // its path, for messages
  physical type{};
  value_kind kind{};
  std::uint8_t most_definition = 0;
  std::uint8_t most_repetition = 0;
};

/// A part of the schema that is to be read.
struct selected_node {
  node::shape form = node::shape::leaf;
  bool is_optional = false;
  std::uint8_t present_level = 0;
  std::uint8_t repetition_level = 0;
  std::uint8_t element_level = 0;
  std::string key;             // the name in quotes and a colon; before it, a comma if another is
  std::size_t first_leaf = 0;  // the leaves below, numbered among the selected ones
  std::size_t end_leaf = 0;
  std::vector<selected_node> children;
};

struct selected_columns {
  std::shared_ptr<const parquet::file> file;
  selected_node root;
  std::vector<selected_leaf> leaves;

  const file_contents& contents() const noexcept { return file->contents(); }
  const column_chunk& chunk(std::size_t row_group, const selected_leaf& leaf) const {
    return contents().metadata.row_groups[row_group].columns[leaf.column];
  }
};

/// Offset of the first page of a column of a row group. A selection checked it.
std::uint64_t first_page(const column_chunk& chunk) noexcept;

}  // namespace millrace::parquet::detail
