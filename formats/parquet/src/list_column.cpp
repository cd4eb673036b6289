// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/list_column.hpp>

#include <utility>

namespace millrace::parquet {

list_column::list_column(std::shared_ptr<const file> from, const std::string& name)
    : columns_(std::move(from), std::vector<column_path>{{name}}) {
  if (!columns_.file().row_groups().empty()) reader_.emplace(columns_, row_group_);
}

bool list_column::next(std::vector<std::int32_t>& out) {
  while (reader_) {
    if (reader_->next(out)) return true;
    reader_.reset();
    const bool has_next = row_group_ + 1 < columns_.file().row_groups().size();
    if (has_next) reader_.emplace(columns_, ++row_group_);
  }
  return false;
}

}  // namespace millrace::parquet
