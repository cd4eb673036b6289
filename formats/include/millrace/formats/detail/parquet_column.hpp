// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/mask.hpp>
#include <millrace/formats/detail/thrift_writer.hpp>
#include <millrace/formats/detail/varint.hpp>

/// The part of Apache Parquet that columns of lists need. Specification:
/// formats/spec/packed_parquet.md.
namespace millrace::formats {

/// Appends one Zstandard frame, which holds `page`, to `out`. Empty: pages are not compressed.
using parquet_zstd =
    std::function<void(std::span<const std::byte> page, std::vector<std::byte>& out)>;

/// Numbers of parquet.thrift that we write. They are on disk.
namespace parquet {
inline constexpr std::int32_t type_int32 = 1;
inline constexpr std::int32_t converted_list = 3;
inline constexpr std::int32_t converted_int8 = 15;
inline constexpr std::int32_t repetition_optional = 1;
inline constexpr std::int32_t repetition_repeated = 2;
inline constexpr std::int32_t encoding_plain = 0;
inline constexpr std::int32_t encoding_rle = 3;
inline constexpr std::int32_t encoding_rle_dictionary = 8;
inline constexpr std::int32_t codec_none = 0;
inline constexpr std::int32_t codec_zstd = 6;
inline constexpr std::int32_t page_data = 0;
inline constexpr std::int32_t page_dictionary = 2;
}  // namespace parquet

/// What a column's lists hold.
enum class parquet_values : std::uint8_t {
  int32,  ///< any int32, stored as such
  bit,    ///< int8, of which only 0 and 1 occur; stored as indices into a dictionary
};

/// A column of nonempty lists, without nulls: encodes the pages of a row group.
///
/// Append lists, and end a page whenever `page_bytes()` is large enough. A page holds whole lists.
/// Not thread-safe.
class parquet_column {
 public:
  parquet_column(std::string name, parquet_values values) : name_(std::move(name)), kind_(values) {}

  /// @pre the column has values of int32, and !list.empty()
  void append(std::span<const std::int32_t> list);
  /// @pre the column has bits, and `list` is not empty and has only the values 0 and 1
  void append(std::span<const std::uint8_t> list);

  /// Size of the current page in bytes, before compression and without its header.
  std::size_t page_bytes() const noexcept {
    return list_runs_.size() + numbers_.size() + mask_bit_bytes(bits_.size());
  }

  /// Appends the current page to `out`; before the first page of a row group, also the dictionary.
  /// Appends nothing if the page is empty.
  ///
  /// @pre page_bytes() < 2^31 - 64
  void end_page(const parquet_zstd& zstd, std::vector<std::byte>& out);

  /// Sizes in bytes of all pages of the row group so far, with their headers.
  std::uint64_t chunk_bytes() const noexcept { return chunk_.bytes; }
  std::uint64_t uncompressed_bytes() const noexcept { return chunk_.uncompressed_bytes; }

  /// Writes the column as elements of the list `schema`: three structs SchemaElement.
  void put_schema(thrift_writer& to) const;
  static constexpr std::uint32_t schema_elements = 3;

  /// Writes a struct ColumnChunk.
  /// @param begin  offset of the first page in the file, in bytes
  void put_chunk(thrift_writer& to, std::uint64_t begin, bool is_compressed) const;

  /// Forgets the pages, and starts the next row group.
  /// @pre end_page() was called after the last list
  void next_chunk() noexcept {
    assert(page_elements_ == 0);
    chunk_ = {};
  }

 private:
  struct chunk {
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
    std::uint64_t uncompressed_bytes = 0;
    std::uint64_t dictionary_bytes = 0;  // page and header; 0 without a dictionary
  };

  void add_levels(std::uint64_t elements);
  void put_dictionary(const parquet_zstd& zstd, std::vector<std::byte>& out);
  template <class Fields>
  void put_page(std::int32_t type, unsigned field, Fields&& write_fields,
                std::span<const std::byte> body, const parquet_zstd& zstd,
                std::vector<std::byte>& out);

  std::string name_;
  parquet_values kind_;
  chunk chunk_;
  // The current page.
  std::uint64_t page_elements_ = 0;
  std::vector<std::byte> list_runs_;  // repetition levels
  std::vector<std::byte> numbers_;
  bit_buffer bits_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

inline void append_varint(std::vector<std::byte>& to, std::uint64_t value) {
  std::array<std::byte, most_varint_bytes> buffer;
  to.insert(to.end(), buffer.data(), put_varint(buffer.data(), value));
}

/// Appends `count` equal levels in the RLE encoding.
inline void append_level_run(std::vector<std::byte>& to, std::uint64_t count, std::uint8_t level) {
  append_varint(to, count << 1);
  to.push_back(static_cast<std::byte>(level));
}

/// Appends levels as a data page has them: with their size in front.
inline void append_sized(std::vector<std::byte>& to, std::span<const std::byte> levels) {
  const auto size =
      std::bit_cast<std::array<std::byte, 4>>(static_cast<std::uint32_t>(levels.size()));
  to.insert(to.end(), size.begin(), size.end());
  to.insert(to.end(), levels.begin(), levels.end());
}

inline constexpr std::uint8_t present_level = 3;  // the definition level of an element

}  // namespace detail

inline void parquet_column::add_levels(std::uint64_t elements) {
  // Level 0 starts a list, 1 continues it.
  detail::append_level_run(list_runs_, 1, 0);
  if (elements > 1) detail::append_level_run(list_runs_, elements - 1, 1);
  page_elements_ += elements;
}

inline void parquet_column::append(std::span<const std::int32_t> list) {
  assert(kind_ == parquet_values::int32 && !list.empty());
  add_levels(list.size());
  const auto bytes = std::as_bytes(list);
  numbers_.insert(numbers_.end(), bytes.begin(), bytes.end());
}

inline void parquet_column::append(std::span<const std::uint8_t> list) {
  assert(kind_ == parquet_values::bit && !list.empty());
  add_levels(list.size());
  while (!list.empty()) {
    const auto part = list.first(std::min<std::size_t>(64, list.size()));
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < part.size(); ++i) word |= std::uint64_t{part[i]} << i;
    bits_.append_word(word, static_cast<unsigned>(part.size()));
    list = list.subspan(part.size());
  }
}

/// Writes the header and the body of a page. `field` is the number of its own header in PageHeader.
template <class Fields>
void parquet_column::put_page(std::int32_t type, unsigned field, Fields&& write_fields,
                              std::span<const std::byte> body, const parquet_zstd& zstd,
                              std::vector<std::byte>& out) {
  std::vector<std::byte> compressed;
  auto stored = body;
  if (zstd) {
    zstd(body, compressed);
    stored = compressed;
  }
  assert(std::max(body.size(), stored.size()) <=
         static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  thrift_writer header;
  header.fields([&] {
    header.field_int32(1, type);
    header.field_int32(2, static_cast<std::int32_t>(body.size()));
    header.field_int32(3, static_cast<std::int32_t>(stored.size()));
    header.field_struct(field, [&] { write_fields(header); });
  });
  out.insert(out.end(), header.bytes().begin(), header.bytes().end());
  out.insert(out.end(), stored.begin(), stored.end());
  chunk_.bytes += header.bytes().size() + stored.size();
  chunk_.uncompressed_bytes += header.bytes().size() + body.size();
}

inline void parquet_column::put_dictionary(const parquet_zstd& zstd, std::vector<std::byte>& out) {
  constexpr std::array<std::int32_t, 2> dictionary = {0, 1};
  const auto fields = [&](thrift_writer& header) {
    header.field_int32(1, static_cast<std::int32_t>(dictionary.size()));
    header.field_int32(2, parquet::encoding_plain);
  };
  put_page(parquet::page_dictionary, 7, fields, std::as_bytes(std::span(dictionary)), zstd, out);
  chunk_.dictionary_bytes = chunk_.bytes;
}

inline void parquet_column::end_page(const parquet_zstd& zstd, std::vector<std::byte>& out) {
  if (page_elements_ == 0) return;
  const bool has_dictionary = kind_ == parquet_values::bit;
  if (has_dictionary && chunk_.bytes == 0) put_dictionary(zstd, out);
  std::vector<std::byte> body;
  body.reserve(page_bytes() + 32);
  detail::append_sized(body, list_runs_);
  std::vector<std::byte> definition;
  detail::append_level_run(definition, page_elements_, detail::present_level);
  detail::append_sized(body, definition);
  if (has_dictionary) {
    // One bit-packed run: how many bits an index has, then how many groups of eight indices follow.
    const auto bits = bits_.bits().bytes().first(mask_bit_bytes(bits_.size()));
    body.push_back(std::byte{1});
    detail::append_varint(body, bits.size() << 1 | 1);
    body.insert(body.end(), bits.begin(), bits.end());
  } else {
    body.insert(body.end(), numbers_.begin(), numbers_.end());
  }
  const auto fields = [&](thrift_writer& header) {
    header.field_int32(1, static_cast<std::int32_t>(page_elements_));
    header.field_int32(2,
                       has_dictionary ? parquet::encoding_rle_dictionary : parquet::encoding_plain);
    header.field_int32(3, parquet::encoding_rle);
    header.field_int32(4, parquet::encoding_rle);
  };
  put_page(parquet::page_data, 5, fields, body, zstd, out);
  chunk_.elements += page_elements_;
  page_elements_ = 0;
  list_runs_.clear();
  numbers_.clear();
  bits_.clear();
}

inline void parquet_column::put_schema(thrift_writer& to) const {
  to.fields([&] {
    to.field_int32(3, parquet::repetition_optional);
    to.field_text(4, name_);
    to.field_int32(5, 1);  // children
    to.field_int32(6, parquet::converted_list);
    to.field_struct(10, [&] { to.field_struct(3, [] {}); });  // the logical type LIST
  });
  to.fields([&] {
    to.field_int32(3, parquet::repetition_repeated);
    to.field_text(4, "list");
    to.field_int32(5, 1);
  });
  to.fields([&] {
    to.field_int32(1, parquet::type_int32);
    to.field_int32(3, parquet::repetition_optional);
    to.field_text(4, "element");
    if (kind_ == parquet_values::int32) return;
    to.field_int32(6, parquet::converted_int8);
    to.field_struct(10, [&] {
      to.field_struct(10, [&] {  // the logical type INTEGER: 8 bits, signed
        to.field_int8(1, 8);
        to.field_bool(2, true);
      });
    });
  });
}

inline void parquet_column::put_chunk(thrift_writer& to, std::uint64_t begin,
                                      bool is_compressed) const {
  const bool has_dictionary = chunk_.dictionary_bytes != 0;
  to.fields([&] {
    to.field_int64(2, 0);  // no metadata outside of the footer
    to.field_struct(3, [&] {
      to.field_int32(1, parquet::type_int32);
      to.field_list(2, thrift_writer::element::int32, has_dictionary ? 3 : 2);
      to.put_int32(parquet::encoding_plain);
      to.put_int32(parquet::encoding_rle);
      if (has_dictionary) to.put_int32(parquet::encoding_rle_dictionary);
      to.field_list(3, thrift_writer::element::text, 3);
      for (const std::string& part : {name_, std::string("list"), std::string("element")}) {
        to.put_text(part);
      }
      to.field_int32(4, is_compressed ? parquet::codec_zstd : parquet::codec_none);
      to.field_int64(5, static_cast<std::int64_t>(chunk_.elements));
      to.field_int64(6, static_cast<std::int64_t>(chunk_.uncompressed_bytes));
      to.field_int64(7, static_cast<std::int64_t>(chunk_.bytes));
      to.field_int64(9, static_cast<std::int64_t>(begin + chunk_.dictionary_bytes));
      if (has_dictionary) to.field_int64(11, static_cast<std::int64_t>(begin));
    });
  });
}

}  // namespace millrace::formats
