// SPDX-License-Identifier: Apache-2.0
#include "packed_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <millrace/dataset/convert.hpp>
#include <millrace/error.hpp>
#include <millrace/parquet/file.hpp>
#include <millrace/parquet/list_reader.hpp>

namespace millrace::inspect {

namespace {

constexpr const char* ids_name = "input_ids";
constexpr const char* mask_name = "loss_mask";
constexpr const char* starts_name = "seq_start_id";

/// The three columns of a file, at the same row.
class row_columns {
 public:
  explicit row_columns(const std::shared_ptr<const parquet::file>& file)
      : ids_(file, ids_name), mask_(file, mask_name), starts_(file, starts_name) {}

  bool next_starts(std::vector<std::int32_t>& starts) { return starts_.next(starts); }

  bool next_row(dataset::packed_row& row) {
    // Each column has as many rows as the footer says, so they end together.
    const bool has_row = ids_.next(row.ids);
    (void)mask_.next(row.loss_mask);
    (void)starts_.next(row.starts);
    if (has_row) row.offset = ids_.columns().file_offset(ids_.row_group());
    return has_row;
  }

  std::uint64_t token_count() const {
    std::uint64_t total = 0;
    for (std::size_t group = 0; group < ids_.columns().file().row_groups().size(); ++group) {
      const std::uint64_t values = ids_.columns().value_count(group);
      total += std::min(values, std::numeric_limits<std::uint64_t>::max() - total);
    }
    return total;
  }

 private:
  parquet::list_column ids_;
  parquet::list_column mask_;
  parquet::list_column starts_;
};

}  // namespace

dataset::packed_rows_file open_packed_rows(const std::filesystem::path& path) {
  const auto file = parquet::file::open(path);
  const auto columns = std::make_shared<row_columns>(file);
  dataset::packed_rows_file opened;
  opened.tokens = columns->token_count();
  for (std::string& name : file->column_names()) {
    if (name != ids_name && name != mask_name && name != starts_name) {
      opened.other_columns.push_back(std::move(name));
    }
  }
  opened.next_starts = [columns](std::vector<std::int32_t>& starts) {
    return columns->next_starts(starts);
  };
  opened.next_row = [columns](dataset::packed_row& row) { return columns->next_row(row); };
  return opened;
}

std::vector<std::filesystem::path> packed_rows_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code code;
  std::filesystem::directory_iterator each(folder, code);
  for (const std::filesystem::directory_iterator end; !code && each != end; each.increment(code)) {
    const auto ending = each->path().extension();
    if (ending == ".parquet" || ending == ".pq") files.push_back(each->path());
  }
  if (code) throw io_error(folder, "readdir", code.value());
  if (files.empty()) {
    throw config_error(folder.string() +
                       ": no file in this folder has a name that ends in .parquet or .pq");
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace millrace::inspect
