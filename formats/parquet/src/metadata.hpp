// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thrift_reader.hpp"

/// The structs of parquet.thrift, as far as a reader of columns needs them.
namespace millrace::parquet::detail {

// The values of these enums are on disk. A file may also have values without a name here.
enum class physical : std::int32_t {
  boolean = 0,
  int32 = 1,
  int64 = 2,
  int96 = 3,
  float32 = 4,
  float64 = 5,
  byte_array = 6,
  fixed_len_byte_array = 7,
};
enum class repetition : std::int32_t { required = 0, optional = 1, repeated = 2 };
enum class codec : std::int32_t {
  uncompressed = 0,
  snappy = 1,
  gzip = 2,
  lzo = 3,
  brotli = 4,
  lz4 = 5,
  zstd = 6,
  lz4_raw = 7,
};
enum class encoding : std::int32_t {
  plain = 0,
  plain_dictionary = 2,
  rle = 3,
  bit_packed = 4,
  delta_binary_packed = 5,
  delta_length_byte_array = 6,
  delta_byte_array = 7,
  rle_dictionary = 8,
  byte_stream_split = 9,
};
/// Whether the values of a page are indices into the dictionary.
constexpr bool needs_dictionary(encoding how) noexcept {
  return how == encoding::plain_dictionary || how == encoding::rle_dictionary;
}
enum class page_type : std::int32_t { data = 0, index = 1, dictionary = 2, data_v2 = 3 };

/// An entry of the schema, which is a tree in depth-first order.
struct schema_element {
  std::string name;
  std::optional<physical> type;  // of leaves
  std::optional<repetition> repeats;
  std::int32_t children = 0;
  std::optional<std::int32_t> converted;  // the old annotation
  std::int32_t logical = 0;               // the new annotation: a field of the union LogicalType
  bool integer_is_signed = true;          // of the logical type INTEGER
};

/// Where the pages of a column of a row group are.
struct column_chunk {
  bool is_elsewhere = false;  // in another file
  bool is_encrypted = false;
  bool has_metadata = false;
  physical type{};
  codec compression{};
  std::int64_t values = 0;  // entries, including nulls
  std::int64_t uncompressed_bytes = 0;
  std::int64_t stored_bytes = 0;
  std::int64_t data_page_offset = 0;
  std::int64_t dictionary_page_offset = 0;  // 0: none
};

struct row_group_metadata {
  std::vector<column_chunk> columns;
  std::int64_t rows = 0;
};

struct file_metadata {
  std::vector<schema_element> schema;
  std::vector<row_group_metadata> row_groups;
  std::int64_t rows = 0;
};

struct page_header {
  page_type type{};
  std::int32_t uncompressed_bytes = 0;
  std::int32_t stored_bytes = 0;
  std::optional<std::int32_t> crc;
  std::int32_t values = 0;  // entries, including nulls
  encoding values_encoding{};
  // Of data pages of version 1.
  encoding definition_encoding{};
  encoding repetition_encoding{};
  // Of data pages of version 2.
  std::int32_t definition_bytes = 0;
  std::int32_t repetition_bytes = 0;
  bool is_compressed = true;

  bool is_data() const noexcept { return type == page_type::data || type == page_type::data_v2; }
};

/// @param offset  position of the first byte in the file
/// @throws format_error, without a path
file_metadata parse_file_metadata(std::span<const char> bytes, std::uint64_t offset);

/// Reads the header of a page, and leaves `in` at the page's body.
///
/// @throws format_error, without a path
page_header parse_page_header(thrift_reader& in);

/// "SNAPPY", or "number 9" if it has no name.
std::string name_of(codec compression);
std::string name_of(encoding how);

}  // namespace millrace::parquet::detail
