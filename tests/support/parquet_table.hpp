// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/small_parquet.hpp"

/// Tables of texts as Parquet files: optional columns, without compression.
namespace millrace::test {

using parquet_row = std::vector<std::optional<std::string>>;  // one cell per column

struct parquet_table {
  std::vector<std::string> columns;
  std::vector<parquet_row> rows;
};

/// Returns the bytes of a file. Row groups and pages have random numbers of rows.
///
/// @param most_rows  most rows of a row group, and of a page
inline std::string encode_parquet(const parquet_table& table, std::mt19937_64& random,
                                  std::size_t most_rows = 20) {
  using row_span = std::span<const parquet_row>;
  const auto take_some = [&](row_span& from) {
    const row_span part = from.first(std::min<std::size_t>(from.size(), 1 + random() % most_rows));
    from = from.subspan(part.size());
    return part;
  };
  const auto page_of = [](row_span rows, std::size_t column) {
    std::vector<int> present;
    std::vector<std::string> texts;
    for (const parquet_row& row : rows) {
      present.push_back(row[column] ? 1 : 0);
      if (row[column]) texts.push_back(*row[column]);
    }
    return parquet_page{.body = levels(present) + plain_texts(texts),
                        .values = static_cast<int>(rows.size())};
  };
  small_parquet file;
  file.root_children = static_cast<int>(table.columns.size());
  for (const std::string& name : table.columns) {
    file.schema.push_back({.name = name, .repetition = 1, .type = 6, .converted = 0});
  }
  file.chunks.resize(table.columns.size());  // the first row group has no rows
  for (row_span left = table.rows; !left.empty();) {
    const row_span rows = take_some(left);
    parquet_group& group = file.later_groups.emplace_back();
    group.rows = static_cast<std::int64_t>(rows.size());
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      parquet_chunk& chunk = group.chunks.emplace_back();
      chunk.values = group.rows;
      for (row_span in_pages = rows; !in_pages.empty();) {
        chunk.pages.push_back(page_of(take_some(in_pages), column));
      }
    }
  }
  return file.bytes();
}

/// A table of texts, most of them short, with some nulls and some that are not UTF-8.
inline parquet_table random_table(std::mt19937_64& random, std::vector<std::string> columns,
                                  std::size_t most_rows, bool bad) {
  parquet_table table{std::move(columns), {}};
  for (std::size_t n = random() % (most_rows + 1); n > 0; --n) {
    parquet_row row;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const auto kind = random() % 20;
      if (bad && kind == 0) {
        row.emplace_back();
      } else if (bad && kind == 1) {
        row.emplace_back("\xFF");
      } else {
        row.emplace_back(std::string(random() % 90, 'a'));
        for (char& c : *row.back()) {
          c = "ab\n\"\\\x01 z"[random() % 8];
        }
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace millrace::test
