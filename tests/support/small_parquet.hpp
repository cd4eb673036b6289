// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/thrift_writer.hpp>
#include <millrace/parquet/file.hpp>
#include <millrace/parquet/row_reader.hpp>
#include <millrace/parquet/selection.hpp>

#include "support/paths.hpp"

/// Parquet files made by hand, with any mistake in them.
namespace millrace::test {

/// Appends `value` as it is in memory, little-endian.
template <class T>
std::string le(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// Texts in the encoding PLAIN.
inline std::string plain_texts(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const std::string& text : texts) {
    bytes += le(static_cast<std::uint32_t>(text.size()));
    bytes += text;
  }
  return bytes;
}

/// Levels of one bit or more, one run for each, with their size in front.
inline std::string levels(const std::vector<int>& each) {
  std::string runs;
  for (const int level : each) {
    runs += '\2';  // a run of one
    runs += static_cast<char>(level);
  }
  return le(static_cast<std::uint32_t>(runs.size())) + runs;
}

struct parquet_element {
  std::string name{};
  int repetition = 0;
  std::optional<int> type{};  // of leaves: 6 for texts, 1 for int32
  int children = 0;
  std::optional<int> converted{};
  std::optional<int> logical{};  // a field of LogicalType
};

struct parquet_page {
  std::string body{};
  int values = 0;
  int encoding = 0;  // 0: PLAIN, 8: RLE_DICTIONARY
  int type = 0;      // 0: data, 2: dictionary
  std::optional<std::int32_t> crc{};
  std::optional<std::int32_t> uncompressed_bytes{};
  int level_encoding = 3;  // RLE
};

struct parquet_chunk {
  int type = 6;
  int codec = 0;
  std::vector<parquet_page> pages{};
  std::int64_t values = 0;
  std::int64_t offset_change = 0;  // added to the offset of the first page
  bool is_encrypted = false;
};

struct parquet_group {
  std::vector<parquet_chunk> chunks;
  std::int64_t rows = 0;
};

/// A file. Its first row group is the base class.
struct small_parquet : parquet_group {
  std::vector<parquet_element> schema;  // without the root
  int root_children = 1;
  std::vector<parquet_group> later_groups{};
  std::optional<std::int64_t> footer_rows{};  // other than those of the row groups

  std::string bytes() const {
    std::string file = "PAR1";
    formats::thrift_writer groups;
    std::int64_t all_rows = rows;
    put_row_group(*this, file, groups);
    for (const parquet_group& group : later_groups) {
      put_row_group(group, file, groups);
      all_rows += group.rows;
    }
    formats::thrift_writer to;
    to.fields([&] {
      to.field_int32(1, 2);
      put_schema(to);
      to.field_int64(3, footer_rows.value_or(all_rows));
      to.field_list(4, formats::thrift_writer::element::structure,
                    static_cast<std::uint32_t>(1 + later_groups.size()));
      to.append(groups.bytes());
    });
    const std::string footer(reinterpret_cast<const char*>(to.bytes().data()), to.bytes().size());
    return file + footer + le(static_cast<std::uint32_t>(footer.size())) + "PAR1";
  }

 private:
  static void append(const parquet_page& page, std::string& file) {
    formats::thrift_writer to;
    to.fields([&] {
      to.field_int32(1, page.type);
      to.field_int32(2, page.uncompressed_bytes.value_or(static_cast<int>(page.body.size())));
      to.field_int32(3, static_cast<int>(page.body.size()));
      if (page.crc) to.field_int32(4, *page.crc);
      to.field_struct(page.type == 2 ? 7 : 5, [&] {
        to.field_int32(1, page.values);
        to.field_int32(2, page.encoding);
        if (page.type == 2) return;
        to.field_int32(3, page.level_encoding);
        to.field_int32(4, page.level_encoding);
      });
    });
    file.append(reinterpret_cast<const char*>(to.bytes().data()), to.bytes().size());
    file += page.body;
  }

  void put_schema(formats::thrift_writer& to) const {
    to.field_list(2, formats::thrift_writer::element::structure,
                  static_cast<std::uint32_t>(schema.size() + 1));
    to.fields([&] {
      to.field_text(4, "schema");
      to.field_int32(5, root_children);
    });
    for (const parquet_element& element : schema) {
      to.fields([&] {
        if (element.type) to.field_int32(1, *element.type);
        to.field_int32(3, element.repetition);
        to.field_text(4, element.name);
        if (element.children != 0) to.field_int32(5, element.children);
        if (element.converted) to.field_int32(6, *element.converted);
        if (element.logical) {
          const auto field = static_cast<unsigned>(*element.logical);
          to.field_struct(10, [&] {
            // The writer knows no steps above 15, and 15 is enough for one field after another.
            if (field > 15) to.field_struct(15, [] {});
            to.field_struct(field, [] {});
          });
        }
      });
    }
  }

  /// Appends the pages to the file, and the metadata to `to`.
  static void put_row_group(const parquet_group& group, std::string& file,
                            formats::thrift_writer& to) {
    to.fields([&] {
      to.field_list(1, formats::thrift_writer::element::structure,
                    static_cast<std::uint32_t>(group.chunks.size()));
      for (const parquet_chunk& chunk : group.chunks) {
        const auto begin = static_cast<std::int64_t>(file.size());
        for (const parquet_page& page : chunk.pages) append(page, file);
        const std::int64_t size = static_cast<std::int64_t>(file.size()) - begin;
        to.fields([&] {
          to.field_int64(2, 0);
          to.field_struct(3, [&] {
            to.field_int32(1, chunk.type);
            to.field_list(2, formats::thrift_writer::element::int32, 0);
            to.field_list(3, formats::thrift_writer::element{}, 0);  // some writers give it no type
            to.field_int32(4, chunk.codec);
            to.field_int64(5, chunk.values);
            to.field_int64(6, size);
            to.field_int64(7, size);
            to.field_int64(9, begin + chunk.offset_change);
          });
          if (chunk.is_encrypted) to.field_struct(8, [] {});
        });
      }
      to.field_int64(2, 0);
      to.field_int64(3, group.rows);
    });
  }
};

/// A file of one column `text` without nulls, in one page, with nothing wrong.
inline small_parquet parquet_of(const std::vector<std::string>& texts) {
  const int rows = static_cast<int>(texts.size());
  small_parquet file;
  file.schema = {{.name = "text", .type = 6, .converted = 0}};
  file.chunks = {{.pages = {{.body = plain_texts(texts), .values = rows}}, .values = rows}};
  file.rows = rows;
  return file;
}

/// A sink that keeps all text.
class text_keeper final : public parquet::text_sink {
 public:
  char* room(std::size_t bytes) override {
    room_.resize(bytes);
    return room_.data();
  }
  void filled(std::size_t bytes) override { text.append(room_.data(), bytes); }

  std::string text;

 private:
  std::vector<char> room_;
};

/// A file in a temporary folder.
class parquet_on_disk {
 public:
  explicit parquet_on_disk(const std::string& bytes) {
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  explicit parquet_on_disk(const small_parquet& made) : parquet_on_disk(made.bytes()) {}

  std::filesystem::path path() const { return folder_ / "small.parquet"; }
  std::shared_ptr<const parquet::file> open() const { return parquet::file::open(path()); }

 private:
  temp_folder folder_;
};

/// The rows of all row groups as lines.
inline std::string parquet_lines(const std::shared_ptr<const parquet::file>& file,
                                 std::vector<parquet::column_path> paths = {}) {
  if (paths.empty()) {
    for (const std::string& name : file->column_names()) paths.push_back({name});
  }
  const parquet::selection columns(file, paths);
  text_keeper sink;
  for (std::size_t group = 0; group < file->row_groups().size(); ++group) {
    parquet::row_reader rows(columns, group);
    while (rows.read(sink, 2, 1 << 20) != 0) continue;
  }
  return sink.text;
}

inline std::string parquet_lines(const small_parquet& made) {
  return parquet_lines(parquet_on_disk(made).open());
}

/// The lines, or the message of the error.
template <class Made>
std::string parquet_refusal(const Made& made) {
  const parquet_on_disk disk(made);
  try {
    return "accepted: " + parquet_lines(disk.open());
  } catch (const error& e) {
    return e.what();
  }
}

}  // namespace millrace::test
