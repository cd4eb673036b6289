// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/parquet_column.hpp>
#include <millrace/formats/detail/thrift_writer.hpp>

/// The packed rows of Megatron-Bridge, as a Parquet file. Specification:
/// formats/spec/packed_parquet.md.
namespace millrace::formats {

/// The longest list of a row, so that a page of one row stays below 2^31 bytes.
inline constexpr std::size_t packed_parquet_most_elements = std::size_t{1} << 28;
/// The largest `page_bytes`, so that a page of masks has fewer than 2^31 elements.
inline constexpr std::int64_t packed_parquet_most_page_bytes = std::int64_t{1} << 27;
/// Arrow refuses longer lists in the metadata of a file.
inline constexpr std::int64_t packed_parquet_most_groups = 1'000'000;

/// What is wrong with a row, as the end of a sentence; empty if it has the form that the
/// specification demands. Parameters as in `packed_parquet_encoder::add_row`.
template <class Mask>
std::string packed_row_fault(std::span<const std::int32_t> ids, std::span<const Mask> loss_mask,
                             std::span<const std::int32_t> starts);

struct packed_parquet_options {
  /// Rows of a row group. Bridge reads whole row groups: it keeps one in memory.
  std::int64_t row_group_rows = 500;
  /// A row group ends early, before a column has more elements than this, unless its only row has
  /// more. Arrow counts the elements of a column with an int32.
  std::uint64_t row_group_elements = std::uint64_t{1} << 30;
  /// A page ends with the row that brings it to this size, in bytes before compression.
  std::size_t page_bytes = std::size_t{1} << 20;
  std::int64_t most_row_groups = packed_parquet_most_groups;  ///< of a file; more are an error
  parquet_zstd zstd = {};  ///< compresses pages; empty: they are stored as they are
};

/// Encodes packed rows while they arrive. Equal rows and options give equal bytes, as far as `zstd`
/// does.
///
/// Each call appends bytes of the file to `out`, front to back; the caller may write and clear them
/// between calls. Keeps in memory one page of ids; all pages of the masks and starts of a row
/// group, which take about a bit per id and 4 bytes per start, or less if they are compressed; and
/// about 200 bytes per row group of the file. Not thread-safe.
class packed_parquet_encoder {
 public:
  /// @throws config_error  an option is 0, negative or too large
  explicit packed_parquet_encoder(packed_parquet_options options = {});

  /// Appends a row. If it throws for the row, nothing has changed.
  ///
  /// @param ids        [n] token ids
  /// @param loss_mask  [n] 1 where a loss counts, else 0
  /// @param starts     first position in `ids` of each sequence: from 0, never falling, below n
  /// @throws error  the row breaks these rules, n is 0 or a list has more than
  ///                `packed_parquet_most_elements` elements; or the file has too many row groups
  void add_row(std::span<const std::int32_t> ids, std::span<const std::uint8_t> loss_mask,
               std::span<const std::int32_t> starts, std::vector<std::byte>& out);

  /// Appends the rest of the file. Without rows, the file has no row group; Bridge refuses it
  /// unless other files have rows.
  ///
  /// @pre not called before
  void finish(std::vector<std::byte>& out);

  std::int64_t row_count() const noexcept { return rows_; }

 private:
  void check_row(std::span<const std::int32_t> ids, std::span<const std::uint8_t> loss_mask,
                 std::span<const std::int32_t> starts) const;
  void begin_file(std::vector<std::byte>& out);
  void end_full_pages(std::size_t full, std::vector<std::byte>& out);
  void end_group(std::vector<std::byte>& out);
  std::vector<std::byte> footer() const;

  packed_parquet_options options_;
  // In the order of the file. The pages of the first column go straight to the file.
  std::array<parquet_column, 3> columns_ = {{{"input_ids", parquet_values::int32},
                                             {"loss_mask", parquet_values::bit},
                                             {"seq_start_id", parquet_values::int32}}};
  std::array<std::vector<std::byte>, 2> later_pages_;  // of the other columns
  std::uint64_t file_bytes_ = 0;                       // before the current row group
  std::int64_t rows_ = 0;
  std::int64_t group_rows_ = 0;
  std::uint64_t group_elements_ = 0;  // no column has more
  std::int64_t groups_ = 0;
  std::vector<std::byte> group_metadata_;  // a struct RowGroup for each
};

// ---------------------------------------------------------------------------------------------

inline constexpr std::string_view parquet_magic = "PAR1";

inline packed_parquet_encoder::packed_parquet_encoder(packed_parquet_options options)
    : options_(std::move(options)) {
  if (options_.row_group_rows < 1 || options_.row_group_elements < 1) {
    throw config_error("a row group has " + std::to_string(options_.row_group_rows) +
                       " rows and at most " + std::to_string(options_.row_group_elements) +
                       " elements per column, expected 1 or more");
  }
  const auto check = [](std::int64_t value, const char* what, std::int64_t most) {
    if (value >= 1 && value <= most) return;
    throw config_error(std::to_string(value) + what + ", expected 1 to " + std::to_string(most));
  };
  check(static_cast<std::int64_t>(options_.page_bytes), " bytes per page",
        packed_parquet_most_page_bytes);
  check(options_.most_row_groups, " row groups per file", packed_parquet_most_groups);
}

template <class Mask>
std::string packed_row_fault(std::span<const std::int32_t> ids, std::span<const Mask> loss_mask,
                             std::span<const std::int32_t> starts) {
  if (ids.empty()) return "there are no ids, expected 1 or more";
  if (std::max(ids.size(), starts.size()) > packed_parquet_most_elements) {
    return "there are " + std::to_string(ids.size()) + " ids and " + std::to_string(starts.size()) +
           " starts of sequences, expected at most " + std::to_string(packed_parquet_most_elements);
  }
  if (loss_mask.size() != ids.size()) {
    return "the loss mask has " + std::to_string(loss_mask.size()) + " entries, expected " +
           std::to_string(ids.size()) + ", one per id";
  }
  const auto is_strange = [](Mask each) { return each != 0 && each != 1; };
  const auto strange = std::ranges::find_if(loss_mask, is_strange);
  if (strange != loss_mask.end()) {
    return "entry " + std::to_string(strange - loss_mask.begin()) + " of the loss mask is " +
           std::to_string(*strange) + ", expected 0 or 1";
  }
  if (starts.empty() || starts[0] != 0) {
    return "the first sequence starts at " +
           (starts.empty() ? "no position" : std::to_string(starts[0])) + ", expected 0";
  }
  const auto falls = std::ranges::adjacent_find(starts, std::ranges::greater());
  if (falls != starts.end()) {
    return "a sequence starts at " + std::to_string(falls[1]) + ", after one that starts at " +
           std::to_string(falls[0]);
  }
  if (static_cast<std::size_t>(starts.back()) >= ids.size()) {
    return "a sequence starts at " + std::to_string(starts.back()) + ", expected at most " +
           std::to_string(ids.size() - 1) + ", the last of " + std::to_string(ids.size()) + " ids";
  }
  return {};
}

inline void packed_parquet_encoder::check_row(std::span<const std::int32_t> ids,
                                              std::span<const std::uint8_t> loss_mask,
                                              std::span<const std::int32_t> starts) const {
  const std::string fault = packed_row_fault(ids, loss_mask, starts);
  if (!fault.empty()) throw error("row " + std::to_string(rows_) + ": " + fault);
}

inline void packed_parquet_encoder::begin_file(std::vector<std::byte>& out) {
  if (file_bytes_ != 0) return;
  const auto magic = std::as_bytes(std::span(parquet_magic));
  out.insert(out.end(), magic.begin(), magic.end());
  file_bytes_ = magic.size();
}

inline void packed_parquet_encoder::add_row(std::span<const std::int32_t> ids,
                                            std::span<const std::uint8_t> loss_mask,
                                            std::span<const std::int32_t> starts,
                                            std::vector<std::byte>& out) {
  check_row(ids, loss_mask, starts);
  const std::uint64_t elements = std::max(ids.size(), starts.size());
  if (group_rows_ != 0 && group_elements_ + elements > options_.row_group_elements) {
    end_group(out);
  }
  if (groups_ == options_.most_row_groups) {
    throw error("row " + std::to_string(rows_) + ": the file has " + std::to_string(groups_) +
                " row groups, and more cannot be read; pass more rows per row group");
  }
  begin_file(out);
  columns_[0].append(ids);
  columns_[1].append(loss_mask);
  columns_[2].append(starts);
  ++rows_;
  ++group_rows_;
  group_elements_ += elements;
  end_full_pages(options_.page_bytes, out);
  if (group_rows_ == options_.row_group_rows) end_group(out);
}

inline void packed_parquet_encoder::end_full_pages(std::size_t full, std::vector<std::byte>& out) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].page_bytes() < full) continue;
    columns_[i].end_page(options_.zstd, i == 0 ? out : later_pages_[i - 1]);
  }
}

inline void packed_parquet_encoder::end_group(std::vector<std::byte>& out) {
  if (group_rows_ == 0) return;
  end_full_pages(1, out);
  for (auto& pages : later_pages_) {
    out.insert(out.end(), pages.begin(), pages.end());
    pages.clear();
  }
  std::uint64_t bytes = 0;
  std::uint64_t uncompressed_bytes = 0;
  for (const parquet_column& column : columns_) {
    bytes += column.chunk_bytes();
    uncompressed_bytes += column.uncompressed_bytes();
  }
  thrift_writer group;
  group.fields([&] {
    group.field_list(1, thrift_writer::element::structure,
                     static_cast<std::uint32_t>(columns_.size()));
    std::uint64_t begin = file_bytes_;
    for (parquet_column& column : columns_) {
      column.put_chunk(group, begin, static_cast<bool>(options_.zstd));
      begin += column.chunk_bytes();
      column.next_chunk();
    }
    group.field_int64(2, static_cast<std::int64_t>(uncompressed_bytes));
    group.field_int64(3, group_rows_);
    group.field_int64(5, static_cast<std::int64_t>(file_bytes_));
    group.field_int64(6, static_cast<std::int64_t>(bytes));
  });
  group_metadata_.insert(group_metadata_.end(), group.bytes().begin(), group.bytes().end());
  ++groups_;
  file_bytes_ += bytes;
  group_rows_ = 0;
  group_elements_ = 0;
}

/// A struct FileMetaData.
inline std::vector<std::byte> packed_parquet_encoder::footer() const {
  thrift_writer footer;
  footer.fields([&] {
    footer.field_int32(1, 2);  // the version that has RLE_DICTIONARY
    footer.field_list(
        2, thrift_writer::element::structure,
        1 + parquet_column::schema_elements * static_cast<std::uint32_t>(columns_.size()));
    footer.fields([&] {
      footer.field_text(4, "schema");
      footer.field_int32(5, static_cast<std::int32_t>(columns_.size()));
    });
    for (const parquet_column& column : columns_) column.put_schema(footer);
    footer.field_int64(3, rows_);
    footer.field_list(4, thrift_writer::element::structure, static_cast<std::uint32_t>(groups_));
    footer.append(group_metadata_);
    footer.field_text(6, "millrace");
  });
  return footer.take();
}

inline void packed_parquet_encoder::finish(std::vector<std::byte>& out) {
  begin_file(out);
  end_group(out);
  const std::vector<std::byte> metadata = footer();
  byte_writer end;
  end.put(metadata);
  end("the size of the metadata", static_cast<std::uint32_t>(metadata.size()));
  end.put(std::as_bytes(std::span(parquet_magic)));
  out.insert(out.end(), end.bytes().begin(), end.bytes().end());
}

}  // namespace millrace::formats
