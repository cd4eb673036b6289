// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <millrace/parquet/file.hpp>

namespace millrace::parquet {

namespace detail {
struct selected_columns;
}

/// A row of a row group at which reading can begin without decoding earlier pages.
struct row_cut {
  std::uint64_t row = 0;          ///< counted within the row group
  std::uint64_t page_offset = 0;  ///< of its page in the file; 0 for the first row
};

/// The columns of a file that are to be read.
///
/// Immutable, so that any number of threads may use it at once. Copies share their data. Wherever a
/// row group is given, it must be below `file().row_groups().size()`.
class selection {
 public:
  /// A path may end at a leaf, a struct or a list; everything below it is read.
  ///
  /// @throws config_error  there is no path, or no such column; a path leads into a list; a column
  /// has a type
  ///                       that cannot be read, is encrypted, or is compressed by a codec that this
  ///                       build lacks
  /// @throws format_error  the footer places a column outside of the file
  selection(std::shared_ptr<const parquet::file> file, std::span<const column_path> paths);

  const parquet::file& file() const noexcept;

  /// Bytes of the pages of the selected columns of a row group before compression, as the footer
  /// states them. An estimate: nothing checks it.
  std::uint64_t text_bytes(std::size_t row_group) const;
  /// Values of the selected columns of a row group, as the footer states them: elements of lists,
  /// and one for each null and empty list. An estimate, as above.
  std::uint64_t value_count(std::size_t row_group) const;
  /// Offset in the file at which the first page of the selected columns of a row group begins.
  std::uint64_t file_offset(std::size_t row_group) const;

  /// The rows at which reading can begin without decoding earlier pages. They ascend, and the first
  /// one is row 0. With several columns, or in lists, there is only this one.
  ///
  /// Reads the header of each page of the row group: one small read per page.
  ///
  /// @throws io_error, format_error
  std::vector<row_cut> cut_rows(std::size_t row_group) const;

  const std::shared_ptr<const detail::selected_columns>& columns() const noexcept {
    return columns_;
  }

 private:
  std::shared_ptr<const detail::selected_columns> columns_;
};

}  // namespace millrace::parquet
