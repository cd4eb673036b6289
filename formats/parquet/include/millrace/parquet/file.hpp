// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace millrace::parquet {

namespace detail {
struct file_contents;
}

/// The optional codecs of this build, e.g. "snappy 1.1.9, lz4 1.9.4, without brotli".
std::string optional_codecs();

/// A key path such as {"meta", "text"}: names of nested struct fields, outermost first.
using column_path = std::vector<std::string>;

/// One opened Parquet file: its schema and its row groups. The file stays open.
///
/// Immutable, so that any number of threads may use it at once.
class file {
 public:
  struct row_group {
    std::uint64_t first_row = 0;  ///< rows of all row groups before it
    std::uint64_t rows = 0;
  };

  /// Reads and checks the footer. Columns are checked only when they are selected.
  ///
  /// @throws io_error      the file cannot be read, or is not a regular file
  /// @throws format_error  the file is not Parquet, or is damaged
  /// @throws config_error  the footer is encrypted
  static std::shared_ptr<const file> open(const std::filesystem::path& path);

  explicit file(std::unique_ptr<const detail::file_contents> contents);
  ~file();
  file(const file&) = delete;
  file& operator=(const file&) = delete;

  const std::filesystem::path& path() const noexcept;
  std::uint64_t size_bytes() const noexcept;
  std::uint64_t row_count() const noexcept;
  std::span<const row_group> row_groups() const noexcept;

  /// Names of the columns of the top level, in the order of the schema; for messages.
  std::vector<std::string> column_names() const;

  const detail::file_contents& contents() const noexcept { return *contents_; }

 private:
  std::unique_ptr<const detail::file_contents> contents_;
};

}  // namespace millrace::parquet
