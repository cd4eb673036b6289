// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/parquet/file.hpp>
#include <millrace/parquet/selection.hpp>

namespace millrace::parquet {

/// Reads a column of lists of integers in one row group, row by row. Use from one thread.
class list_reader {
 public:
  /// @param one_column  selects one column, whose rows are lists of integers of any width
  /// @throws config_error  the selection is something else
  /// @throws io_error, format_error
  list_reader(const selection& one_column, std::size_t row_group);
  list_reader(list_reader&&) noexcept;
  list_reader& operator=(list_reader&&) noexcept;
  ~list_reader();

  /// Replaces the content of `out` by the next list.
  ///
  /// @return false at the end of the row group
  /// @throws io_error
  /// @throws format_error  damage; a list or an element is null; an integer exceeds 32 bits
  bool next(std::vector<std::int32_t>& out);

 private:
  class implementation;
  std::unique_ptr<implementation> implementation_;
};

/// Reads a column of lists of integers from the first row of a file to the last. Keeps a few pages
/// in memory. Use from one thread.
class list_column {
 public:
  /// @param name  a column of the top level, whose rows are lists of integers of any width
  /// @throws config_error  there is no such column, its rows are something else, or it is
  ///                       compressed by a codec that this build lacks
  /// @throws io_error, format_error
  list_column(std::shared_ptr<const file> from, const std::string& name);

  /// Replaces the content of `out` by the next list.
  ///
  /// @return false after the last row
  /// @throws io_error, format_error  as `list_reader::next`
  bool next(std::vector<std::int32_t>& out);

  /// The row group of the last list, or of the first row.
  std::size_t row_group() const noexcept { return row_group_; }
  const selection& columns() const noexcept { return columns_; }

 private:
  selection columns_;
  std::size_t row_group_ = 0;
  std::optional<list_reader> reader_;  // empty after the last row
};

}  // namespace millrace::parquet
