// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/parquet_column.hpp>
#include <millrace/formats/detail/thrift_writer.hpp>

/// Writes small Parquet files of texts: optional columns, PLAIN, without compression, pages of
/// version 1.
namespace millrace::test {

using parquet_row = std::vector<std::optional<std::string>>;  // one cell per column

struct parquet_table {
  std::vector<std::string> columns;
  std::vector<parquet_row> rows;
};

namespace detail {

inline std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string parquet_page(std::span<const parquet_row> rows, std::size_t column) {
  std::vector<std::byte> levels;
  for (const parquet_row& row : rows) {
    formats::detail::append_level_run(levels, 1, row[column] ? 1 : 0);
  }
  std::vector<std::byte> body;
  formats::detail::append_sized(body, levels);
  for (const parquet_row& row : rows) {
    if (row[column]) formats::detail::append_sized(body, std::as_bytes(std::span(*row[column])));
  }
  formats::thrift_writer header;
  header.fields([&] {
    header.field_int32(1, formats::parquet::page_data);
    header.field_int32(2, static_cast<std::int32_t>(body.size()));
    header.field_int32(3, static_cast<std::int32_t>(body.size()));
    header.field_struct(5, [&] {
      header.field_int32(1, static_cast<std::int32_t>(rows.size()));
      header.field_int32(2, formats::parquet::encoding_plain);
      header.field_int32(3, formats::parquet::encoding_rle);
      header.field_int32(4, formats::parquet::encoding_rle);
    });
  });
  return as_text(header.bytes()) + as_text(body);
}

}  // namespace detail

/// Returns the bytes of a file. Row groups and pages have random numbers of rows.
///
/// @param most_rows  most rows of a row group, and of a page
inline std::string encode_parquet(const parquet_table& table, std::mt19937_64& random,
                                  std::size_t most_rows = 20) {
  constexpr std::int32_t type_byte_array = 6;
  constexpr std::int32_t converted_utf8 = 0;
  std::string file = "PAR1";
  formats::thrift_writer groups;
  std::uint32_t group_count = 0;
  std::span<const parquet_row> left = table.rows;
  while (!left.empty()) {
    const auto group = left.first(std::min<std::size_t>(left.size(), 1 + random() % most_rows));
    left = left.subspan(group.size());
    const std::size_t group_begin = file.size();
    groups.fields([&] {
      groups.field_list(1, formats::thrift_writer::element::structure,
                        static_cast<std::uint32_t>(table.columns.size()));
      for (std::size_t column = 0; column < table.columns.size(); ++column) {
        const std::size_t begin = file.size();
        for (auto rows = group; !rows.empty();) {
          const std::size_t count = std::min<std::size_t>(rows.size(), 1 + random() % most_rows);
          file += detail::parquet_page(rows.first(count), column);
          rows = rows.subspan(count);
        }
        const auto bytes = static_cast<std::int64_t>(file.size() - begin);
        groups.fields([&] {
          groups.field_int64(2, 0);
          groups.field_struct(3, [&] {
            groups.field_int32(1, type_byte_array);
            groups.field_list(2, formats::thrift_writer::element::int32, 2);
            groups.put_int32(formats::parquet::encoding_plain);
            groups.put_int32(formats::parquet::encoding_rle);
            groups.field_list(3, formats::thrift_writer::element::text, 1);
            groups.put_text(table.columns[column]);
            groups.field_int32(4, formats::parquet::codec_none);
            groups.field_int64(5, static_cast<std::int64_t>(group.size()));
            groups.field_int64(6, bytes);
            groups.field_int64(7, bytes);
            groups.field_int64(9, static_cast<std::int64_t>(begin));
          });
        });
      }
      groups.field_int64(2, static_cast<std::int64_t>(file.size() - group_begin));
      groups.field_int64(3, static_cast<std::int64_t>(group.size()));
    });
    ++group_count;
  }
  formats::thrift_writer footer;
  footer.fields([&] {
    footer.field_int32(1, 2);
    footer.field_list(2, formats::thrift_writer::element::structure,
                      1 + static_cast<std::uint32_t>(table.columns.size()));
    footer.fields([&] {
      footer.field_text(4, "schema");
      footer.field_int32(5, static_cast<std::int32_t>(table.columns.size()));
    });
    for (const std::string& name : table.columns) {
      footer.fields([&] {
        footer.field_int32(1, type_byte_array);
        footer.field_int32(3, formats::parquet::repetition_optional);
        footer.field_text(4, name);
        footer.field_int32(6, converted_utf8);
      });
    }
    footer.field_int64(3, static_cast<std::int64_t>(table.rows.size()));
    footer.field_list(4, formats::thrift_writer::element::structure, group_count);
    footer.append(groups.bytes());
  });
  std::vector<std::byte> end;
  formats::detail::append_sized(end, footer.bytes());
  // The size of the footer comes after it.
  return file + detail::as_text(footer.bytes()) + detail::as_text(std::span(end).first(4)) + "PAR1";
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
