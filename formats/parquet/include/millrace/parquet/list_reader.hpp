// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <millrace/parquet/selection.hpp>

namespace millrace::parquet {

/// Reads a column of lists of integers, row by row. Use from one thread.
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

}  // namespace millrace::parquet
