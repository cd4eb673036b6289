// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/row_reader.hpp>

#include <algorithm>
#include <bit>
#include <deque>
#include <string>
#include <utility>

#include <millrace/error.hpp>

#include "file_contents.hpp"
#include "json_text.hpp"
#include "leaf_reader.hpp"

namespace millrace::parquet {

using detail::json_text;
using detail::leaf_reader;
using detail::node;
using detail::selected_node;

class row_reader::implementation {
 public:
  implementation(const selection& columns, std::size_t row_group, const row_cut& from)
      : columns_(columns.columns()) {
    for (const auto& leaf : columns_->leaves) leaves_.emplace_back(*columns_, leaf);
    restart(row_group, from);
  }

  void restart(std::size_t row_group, const row_cut& from) {
    end_ = columns_->contents().row_groups[row_group].rows;
    row_ = std::min(from.row, end_);
    for (leaf_reader& leaf : leaves_) {
      leaf.restart(row_group);
      if (from.page_offset != 0) {
        leaf.go_to(from);
      } else {
        leaf.skip_rows(row_);
      }
    }
    if (row_ == end_) check_end();
  }

  std::uint64_t read(text_sink& out, std::uint64_t most_rows, std::size_t enough_bytes) {
    const std::uint64_t begin = row_;
    const std::uint64_t end = row_ + std::min(most_rows, end_ - row_);
    if (begin == end) return 0;
    json_text json(out);
    const selected_node& root = columns_->root;
    do {
      for (leaf_reader& leaf : leaves_) start_row(leaf);
      structure(root, json);
      json.raw('\n');
      ++row_;
    } while (row_ != end && json.size() < enough_bytes);
    json.flush();
    if (row_ == end_) check_end();
    return row_ - begin;
  }

 private:
  void start_row(leaf_reader& leaf) const {
    if (!leaf.has_entry()) {
      leaf.where().fail("the pages end after row " + std::to_string(row_) +
                        ", but the footer states " + std::to_string(end_) + " rows");
    }
    if (leaf.repetition() != 0) fail(leaf, "does not begin where a row begins");
  }

  void check_end() {
    for (leaf_reader& leaf : leaves_) {
      if (leaf.has_entry()) {
        leaf.where().fail("the pages have more than the " + std::to_string(end_) +
                          " rows that the footer states");
      }
    }
  }

  [[noreturn]] void fail(const leaf_reader& leaf, const std::string& problem) const {
    leaf.where().fail("row " + std::to_string(row_) + ' ' + problem);
  }

  /// All columns below a node must say the same where it is null or empty.
  void take_nothing(const selected_node& at) {
    const std::uint8_t level = leaves_[at.first_leaf].definition();
    for (std::size_t i = at.first_leaf; i < at.end_leaf; ++i) {
      if (leaves_[i].definition() != level) fail_unequal(leaves_[i]);
      leaves_[i].advance();
    }
  }
  /// All columns below a node must say the same where it has something in it.
  void check_level(const selected_node& at, std::uint8_t least) {
    for (std::size_t i = at.first_leaf; i < at.end_leaf; ++i) {
      if (leaves_[i].definition() < least) fail_unequal(leaves_[i]);
    }
  }
  [[noreturn]] void fail_unequal(const leaf_reader& leaf) const {
    fail(leaf, "disagrees with the other columns of its struct or list");
  }

  void value(const selected_node& at, json_text& json) {
    if (at.form == node::shape::leaf) return leaf(leaves_[at.first_leaf], json);
    if (at.is_optional && leaves_[at.first_leaf].definition() < at.present_level) {
      take_nothing(at);
      return json.raw("null");
    }
    check_level(at, at.present_level);
    if (at.form == node::shape::structure) {
      structure(at, json);
    } else {
      list(at, json);
    }
  }

  void leaf(leaf_reader& at, json_text& json) {
    if (!at.has_value()) {
      json.raw("null");
    } else if (at.leaf().kind == detail::value_kind::text) {
      json.string(at.take_text());
    } else {
      number(at, at.take_number(), json);
    }
    at.advance();
  }

  static void number(const leaf_reader& at, std::uint64_t value, json_text& json) {
    switch (at.leaf().kind) {
      case detail::value_kind::boolean:
        return json.raw(value != 0 ? "true" : "false");
      case detail::value_kind::floating:
        return json.floating(std::bit_cast<double>(value));
      case detail::value_kind::unsigned_integer:
        return json.unsigned_integer(
            at.leaf().type == detail::physical::int32 ? static_cast<std::uint32_t>(value) : value);
      case detail::value_kind::signed_integer:
      case detail::value_kind::text:
        return json.integer(static_cast<std::int64_t>(value));
    }
  }

  void structure(const selected_node& at, json_text& json) {
    json.raw('{');
    for (const selected_node& field : at.children) {
      json.raw(field.key);
      value(field, json);
    }
    json.raw('}');
  }

  void list(const selected_node& at, json_text& json) {
    if (leaves_[at.first_leaf].definition() < at.element_level) {
      take_nothing(at);
      return json.raw("[]");
    }
    json.raw('[');
    while (true) {
      check_level(at, at.element_level);
      value(at.children.front(), json);
      if (!continues(at)) break;
      json.raw(',');
    }
    json.raw(']');
  }

  /// Tells whether the list has another element. The columns below it must agree.
  bool continues(const selected_node& list) {
    const std::uint8_t first = next_repetition(leaves_[list.first_leaf]);
    for (std::size_t i = list.first_leaf + 1; i < list.end_leaf; ++i) {
      if (next_repetition(leaves_[i]) != first) fail_unequal(leaves_[i]);
    }
    if (first > list.repetition_level) {
      fail(leaves_[list.first_leaf], "continues a list that has not begun");
    }
    return first == list.repetition_level;
  }
  static std::uint8_t next_repetition(leaf_reader& leaf) {
    return leaf.has_entry() ? leaf.repetition() : 0;
  }

  std::shared_ptr<const detail::selected_columns> columns_;
  std::deque<leaf_reader> leaves_;
  std::uint64_t row_ = 0;
  std::uint64_t end_ = 0;
};

row_reader::row_reader(const selection& columns, std::size_t row_group, std::uint64_t first_row)
    : row_reader(columns, row_group, row_cut{first_row, 0}) {}
row_reader::row_reader(const selection& columns, std::size_t row_group, const row_cut& from)
    : implementation_(std::make_unique<implementation>(columns, row_group, from)) {}
void row_reader::restart(std::size_t row_group, const row_cut& from) {
  implementation_->restart(row_group, from);
}
row_reader::row_reader(row_reader&&) noexcept = default;
row_reader& row_reader::operator=(row_reader&&) noexcept = default;
row_reader::~row_reader() = default;

std::uint64_t row_reader::read(text_sink& out, std::uint64_t most_rows, std::size_t enough_bytes) {
  return implementation_->read(out, most_rows, enough_bytes);
}

}  // namespace millrace::parquet
