// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/list_reader.hpp>

#include <limits>
#include <string>
#include <utility>

#include <millrace/error.hpp>

#include "file_contents.hpp"
#include "leaf_reader.hpp"

namespace millrace::parquet {

using detail::node;
using detail::value_kind;

class list_reader::implementation {
 public:
  implementation(const selection& one_column, std::size_t row_group)
      : columns_(checked(one_column.columns())),
        list_(columns_->root.children.front()),
        rows_(columns_->contents().row_groups[row_group].rows),
        leaf_(*columns_, columns_->leaves.front()) {
    leaf_.restart(row_group);
  }

  bool next(std::vector<std::int32_t>& out) {
    out.clear();
    if (row_ == rows_) {
      if (leaf_.has_entry()) {
        leaf_.where().fail("the pages have more than the " + std::to_string(rows_) +
                           " rows that the footer states");
      }
      return false;
    }
    if (!leaf_.has_entry()) {
      leaf_.where().fail("the pages end after row " + std::to_string(row_) +
                         ", but the footer states " + std::to_string(rows_) + " rows");
    }
    if (leaf_.repetition() != 0) fail("does not begin where a row begins");
    if (leaf_.definition() < list_.present_level) fail("is null, and only lists are expected");
    if (leaf_.definition() < list_.element_level) {
      leaf_.advance();
    } else {
      do {
        take(out);
      } while (leaf_.has_entry() && leaf_.repetition() != 0);
    }
    ++row_;
    return true;
  }

 private:
  // A few bytes can stand for billions of integers.
  static constexpr std::size_t most_elements = std::size_t{1} << 28;

  static std::shared_ptr<const detail::selected_columns> checked(
      std::shared_ptr<const detail::selected_columns> columns) {
    const auto is_list_of_integers = [&] {
      if (columns->root.children.size() != 1) return false;
      const auto& list = columns->root.children.front();
      if (list.form != node::shape::list) return false;
      if (list.children.front().form != node::shape::leaf) return false;
      const value_kind kind = columns->leaves.front().kind;
      return kind == value_kind::signed_integer || kind == value_kind::unsigned_integer;
    };
    if (!is_list_of_integers()) {
      std::string name;
      for (const auto& leaf : columns->leaves) name += (name.empty() ? "" : ", ") + leaf.name;
      throw config_error(columns->contents().path.string() + ": column '" + name +
                         "' is not a list of integers");
    }
    return columns;
  }

  /// Takes the next elements of the list: at least one, and as many as are decoded.
  void take(std::vector<std::int32_t>& out) {
    if (leaf_.definition() < list_.element_level) fail("continues a list that has no elements");
    if (!leaf_.has_value()) fail("has a null in its list, and only integers are expected");
    const auto values = leaf_.take_numbers();
    if (values.size() > most_elements - out.size()) {
      fail("has more than 2^28 integers, which are too many");
    }
    const bool is_unsigned = leaf_.leaf().kind == value_kind::unsigned_integer;
    const std::int64_t least = is_unsigned ? 0 : std::numeric_limits<std::int32_t>::min();
    const std::size_t begin = out.size();
    out.resize(begin + values.size());
    bool all_fit = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<std::int64_t>(values[i]);
      all_fit &= value >= least && value <= std::numeric_limits<std::int32_t>::max();
      out[begin + i] = static_cast<std::int32_t>(value);
    }
    if (!all_fit) fail("has an integer that does not fit in 32 bits with a sign");
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw format_error(leaf_.where().file->path, leaf_.where().offset,
                       "column '" + leaf_.leaf().name + "': row " + std::to_string(row_) +
                           " of row group " + std::to_string(leaf_.where().row_group) + ' ' +
                           problem);
  }

  std::shared_ptr<const detail::selected_columns> columns_;
  const detail::selected_node& list_;
  std::uint64_t rows_;
  std::uint64_t row_ = 0;
  detail::leaf_reader leaf_;
};

list_reader::list_reader(const selection& one_column, std::size_t row_group)
    : implementation_(std::make_unique<implementation>(one_column, row_group)) {}
list_reader::list_reader(list_reader&&) noexcept = default;
list_reader& list_reader::operator=(list_reader&&) noexcept = default;
list_reader::~list_reader() = default;

bool list_reader::next(std::vector<std::int32_t>& out) {
  return implementation_->next(out);
}

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
