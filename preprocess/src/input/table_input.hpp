// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <millrace/parquet/file.hpp>
#include <millrace/parquet/row_reader.hpp>
#include <millrace/parquet/selection.hpp>

#include "input/byte_buffer.hpp"
#include "input/byte_source.hpp"
#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// The rows of a Parquet file as text: one line of JSON per row, with the columns that the run
/// reads. Row groups are read separately, and within a row group, reading can begin at some pages.
/// Thread-safe.
class table_input {
 public:
  /// Opens the file and finds its columns.
  ///
  /// @throws io_error      the file cannot be read.
  /// @throws format_error  the file is damaged, or its size changed since the inputs were planned.
  /// @throws config_error  the file is encrypted, or has no such column, or the column has a type
  ///                       that cannot be read; the message names the file.
  explicit table_input(const input_file& file);

  std::uint64_t row_count() const noexcept { return file_->row_count(); }
  /// The first row of the last row group that begins at or before a byte of the file.
  std::uint64_t row_before(std::uint64_t file_byte) const;
  /// Approximate byte of the file at which a row begins. Never falls from row to row.
  std::uint64_t byte_of(std::uint64_t row) const;

  /// Opens the text at the beginning of a row.
  std::unique_ptr<byte_source> open_at(std::uint64_t row) const;

 private:
  friend class row_spans;
  friend class row_text;
  std::size_t group_of(std::uint64_t row) const;

  std::shared_ptr<const parquet::file> file_;
  parquet::selection columns_;
  std::vector<std::uint64_t> group_bytes_;  // where the row groups begin in the file; never falls
};

/// Rows that are read together.
struct row_span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t page_offset = 0;  ///< where the page of `begin` is in the file; 0 if unknown
  /// Reading can begin at `begin` without reading rows before it. Otherwise, the rows must be read
  /// in sequence, after those before them.
  bool separate = true;
};

/// Cuts a table into spans of rows.
class row_spans {
 public:
  /// @param row         the first row of the first span
  /// @param most_bytes  part of a row group that cannot be cut is read in sequence if it has more
  ///                    text than this
  row_spans(std::shared_ptr<const table_input> table, std::uint64_t row, std::uint64_t most_bytes);

  /// The next span. It has about `least_bytes` of text or more, unless the table ends or the rest
  /// of a row group is read in sequence.
  ///
  /// @param end  the last span ends here
  /// @return nothing if all rows before `end` are in earlier spans
  std::optional<row_span> next(std::uint64_t end, std::uint64_t least_bytes);

  /// Where the next span begins.
  std::uint64_t row() const noexcept { return row_; }

 private:
  void find_cuts(std::size_t group);

  std::shared_ptr<const table_input> table_;
  std::uint64_t row_;
  std::uint64_t most_bytes_;
  std::vector<parquet::row_cut> cuts_;  // of the row group `cut_group_`, as rows of the table
  std::optional<std::size_t> cut_group_;
};

/// Reads rows in sequence.
class row_text {
 public:
  /// Most bytes of text between two calls of go_to(), so that a small file whose text is huge
  /// cannot fill the memory with tokens.
  static constexpr std::uint64_t most_bytes = std::uint64_t{2} << 30;

  /// Call go_to() before anything else.
  row_text() = default;
  row_text(std::shared_ptr<const table_input> table, std::uint64_t row) {
    go_to(std::move(table), row);
  }

  /// Continues elsewhere. Keeps the memory if it is in the same table.
  ///
  /// @param row          the next row to read
  /// @param page_offset  as in row_span
  void go_to(std::shared_ptr<const table_input> table, std::uint64_t row,
             std::uint64_t page_offset = 0);

  /// Reads rows into a buffer, with padding after them. Stops at row `end`, or after the first row
  /// with which there are at least `enough_bytes`.
  ///
  /// @return the number of bytes
  /// @throws io_error, format_error  the file cannot be read, or is damaged
  std::size_t read(byte_buffer& buffer, std::uint64_t end, std::size_t enough_bytes);

  /// The next row to read.
  std::uint64_t row() const noexcept { return row_; }

  /// @throws format_error  more than `most_bytes` were read since go_to().
  void expect_moderate() const;

 private:
  std::shared_ptr<const table_input> table_;
  std::uint64_t row_ = 0;
  std::uint64_t page_offset_ = 0;
  std::uint64_t bytes_ = 0;           // since go_to()
  std::optional<std::size_t> group_;  // that `rows_` reads; nothing after go_to()
  std::optional<parquet::row_reader> rows_;
};

}  // namespace millrace::preprocess
