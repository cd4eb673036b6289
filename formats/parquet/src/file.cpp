// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/file.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "file_contents.hpp"

namespace millrace::parquet {
namespace {

constexpr std::string_view magic = "PAR1";
constexpr std::string_view encrypted_magic = "PARE";
constexpr std::uint64_t tail_bytes = 8;  // the size of the footer, and the magic bytes
constexpr std::uint64_t least_bytes = 4 + tail_bytes;

void read_exactly(const detail::file_contents& from, std::span<char> out, std::uint64_t offset) {
  const std::size_t n = io::pread_some(from.fd, std::as_writable_bytes(out), offset, from.path);
  if (n != out.size()) throw io_error(from.path, "read (the file became shorter)", ESTALE);
}

/// Reads the footer, without the eight bytes after it, and notes where it begins.
std::vector<char> read_footer(detail::file_contents& file) {
  if (file.size_bytes < least_bytes) {
    throw format_error(0, "this is not a Parquet file: it has " + std::to_string(file.size_bytes) +
                              " bytes, and the smallest one has " + std::to_string(least_bytes));
  }
  std::array<char, 4> head;
  std::array<char, tail_bytes> tail;
  const std::uint64_t tail_offset = file.size_bytes - tail_bytes;
  read_exactly(file, head, 0);
  read_exactly(file, tail, tail_offset);
  const std::string_view first(head.data(), head.size());
  const std::string_view last(tail.data() + 4, 4);
  if (first == encrypted_magic || last == encrypted_magic) {
    throw config_error(file.path.string() +
                       ": the footer is encrypted, and encrypted Parquet files cannot be read; "
                       "decrypt the file first");
  }
  if (first != magic) {
    throw format_error(0, "this is not a Parquet file: expected 'PAR1' in its first four bytes");
  }
  if (last != magic) {
    throw format_error(file.size_bytes - magic.size(),
                       "this Parquet file does not end with 'PAR1'; it is cut off or damaged");
  }
  std::uint32_t size = 0;
  std::memcpy(&size, tail.data(), sizeof size);
  const std::uint64_t most = std::min<std::uint64_t>(file.size_bytes - least_bytes,
                                                     std::numeric_limits<std::int32_t>::max());
  if (size > most) {
    throw format_error(tail_offset, "the footer should have " + std::to_string(size) +
                                        " bytes, but the file has room for " +
                                        std::to_string(most) + "; the file is damaged");
  }
  file.footer_offset = tail_offset - size;
  std::vector<char> footer(size);
  read_exactly(file, footer, file.footer_offset);
  return footer;
}

void add_row_groups(detail::file_contents& file) {
  const auto& metadata = file.metadata;
  for (std::size_t i = 0; i < metadata.row_groups.size(); ++i) {
    const auto& group = metadata.row_groups[i];
    const auto rows = static_cast<std::uint64_t>(group.rows);  // not negative
    if (group.columns.size() != file.schema.columns) {
      throw format_error(file.footer_offset, "row group " + std::to_string(i) + " has " +
                                                 std::to_string(group.columns.size()) +
                                                 " columns, but the schema has " +
                                                 std::to_string(file.schema.columns) +
                                                 "; the file is damaged");
    }
    if (rows > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - file.rows) {
      throw format_error(file.footer_offset,
                         "the row groups have more than 2^63 rows; the file is damaged");
    }
    file.row_groups.push_back({file.rows, rows});
    file.rows += rows;
  }
  if (metadata.rows < 0 || static_cast<std::uint64_t>(metadata.rows) != file.rows) {
    throw format_error(file.footer_offset, "the footer promises " + std::to_string(metadata.rows) +
                                               " rows, but its row groups have " +
                                               std::to_string(file.rows) + "; the file is damaged");
  }
}

}  // namespace

std::shared_ptr<const file> file::open(const std::filesystem::path& path) {
  auto contents = std::make_unique<detail::file_contents>();
  contents->path = path;
  contents->fd = io::open_read_only(path, O_NONBLOCK);  // does not wait for a FIFO's writer
  contents->size_bytes = io::regular_file_size(contents->fd, path);
  try {
    const std::vector<char> footer = read_footer(*contents);
    contents->metadata = detail::parse_file_metadata(footer, contents->footer_offset);
    contents->schema = detail::build_schema(contents->metadata.schema, contents->footer_offset);
    add_row_groups(*contents);
  } catch (const format_error& e) {
    throw e.in(path);
  }
  contents->metadata.schema.clear();
  return std::make_shared<const file>(std::move(contents));
}

file::file(std::unique_ptr<const detail::file_contents> contents)
    : contents_(std::move(contents)) {}
file::~file() = default;

const std::filesystem::path& file::path() const noexcept {
  return contents_->path;
}
std::uint64_t file::size_bytes() const noexcept {
  return contents_->size_bytes;
}
std::uint64_t file::row_count() const noexcept {
  return contents_->rows;
}
std::span<const file::row_group> file::row_groups() const noexcept {
  return contents_->row_groups;
}

std::vector<std::string> file::column_names() const {
  std::vector<std::string> names;
  for (const auto& column : contents_->schema.root.children) names.push_back(column.name);
  return names;
}

}  // namespace millrace::parquet
