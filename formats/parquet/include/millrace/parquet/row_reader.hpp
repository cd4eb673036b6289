// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/parquet/selection.hpp>

namespace millrace::parquet {

/// Where text goes: a growing buffer of the caller.
class text_sink {
 public:
  text_sink() = default;
  text_sink(const text_sink&) = delete;
  text_sink& operator=(const text_sink&) = delete;
  virtual ~text_sink() = default;

  /// Returns room for at least `bytes` more bytes, after those given so far. The room stays valid
  /// until the next call. Not all of it need be filled.
  virtual char* room(std::size_t bytes) = 0;

  /// `bytes` bytes of the room were filled.
  virtual void filled(std::size_t bytes) = 0;
};

// Example:
//
//     const auto file = millrace::parquet::file::open("train.parquet");
//     const std::vector<millrace::parquet::column_path> paths = {{"text"}};
//     const millrace::parquet::selection columns(file, paths);
//     for (std::size_t group = 0; group < file->row_groups().size(); ++group) {
//       millrace::parquet::row_reader rows(columns, group);
//       while (rows.read(sink, 1000, 1 << 20) != 0) use(sink);
//     }

/// Reads the rows of one row group in order, and writes each as a line of JSON.
///
/// A line is an object with the selected keys, in the order of the schema, then '\n'. Structs keep
/// only selected fields. There are no spaces between the parts. In strings, only `"`, `\` and
/// control characters are escaped; other bytes are copied, and whether they are UTF-8 is not
/// checked. Null is `null`. In Python, json.loads gives for each number the value that pyarrow's
/// to_pylist gives: floats have the fewest digits that parse back to the same double, and NaN,
/// Infinity and -Infinity are written so.
///
/// Keeps a few pages per column in memory. Use from one thread; any number of readers may share a
/// selection. After an exception, the reader cannot be used, and the sink may end inside a row.
class row_reader {
 public:
  /// @param first_row  where to begin, counted within the row group. Pages before it are not
  ///                   decoded if the column is not in a list.
  /// @throws io_error, format_error
  row_reader(const selection& columns, std::size_t row_group, std::uint64_t first_row = 0);
  /// As above, but begins at a cut of `columns` in this row group, without passing over pages.
  row_reader(const selection& columns, std::size_t row_group, const row_cut& from);
  /// Begins again elsewhere, as if newly made for the same columns, but keeps the memory.
  void restart(std::size_t row_group, const row_cut& from);

  row_reader(row_reader&&) noexcept;
  row_reader& operator=(row_reader&&) noexcept;
  ~row_reader();

  /// Appends up to `most_rows` rows. Ends early after at least `enough_bytes` were appended.
  ///
  /// After the last row, checks that the pages have exactly the rows that the footer promised.
  ///
  /// @return the number of rows; 0 at the end of the row group
  /// @throws io_error, format_error
  std::uint64_t read(text_sink& out, std::uint64_t most_rows, std::size_t enough_bytes);

 private:
  class implementation;
  std::unique_ptr<implementation> implementation_;
};

}  // namespace millrace::parquet
