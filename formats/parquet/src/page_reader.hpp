// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "buffer.hpp"
#include "codec.hpp"
#include "file_contents.hpp"
#include "metadata.hpp"

namespace millrace::parquet::detail {

/// Where a reader is, for messages.
struct place {
  const file_contents* file = nullptr;
  const selected_leaf* leaf = nullptr;
  std::size_t row_group = 0;
  std::uint64_t offset = 0;  // of the page in the file

  /// @throws format_error  `problem` continues a sentence that names the column.
  [[noreturn]] void fail(const std::string& problem) const;
  /// @throws config_error  nothing is wrong with the file, but this reader cannot read it.
  [[noreturn]] void refuse(const std::string& problem) const;
};

/// Reads a range of a file through a buffer that grows only for what is asked for at once.
class byte_window {
 public:
  explicit byte_window(const file_contents& file) : file_(&file) {}

  /// Begins another range, and keeps the buffer.
  void restart(std::uint64_t begin, std::uint64_t end) noexcept {
    at_ = filled_ = 0;
    next_read_ = begin;
    end_ = end;
  }

  /// Reads so many bytes ahead: many if all of them are wanted, few to look at headers.
  void read_at_once(std::size_t bytes) noexcept { at_once_ = bytes; }

  /// Offset in the file of the next byte.
  std::uint64_t offset() const noexcept { return next_read_ - (filled_ - at_); }
  std::uint64_t left() const noexcept { return end_ - offset(); }

  /// The next `bytes` bytes, valid until the next call. @pre bytes <= left()
  std::span<const char> look(std::size_t bytes) {
    if (bytes > filled_ - at_) fill(bytes);
    return {bytes_.data() + at_, bytes};
  }
  /// @pre bytes <= left()
  void skip(std::uint64_t bytes) noexcept;

 private:
  void fill(std::size_t bytes);

  const file_contents* file_;
  buffer bytes_;
  std::size_t at_ = 0;  // the bytes that were read and not skipped: [at_, filled_)
  std::size_t filled_ = 0;
  std::uint64_t next_read_ = 0;  // in the file
  std::uint64_t end_ = 0;
  std::size_t at_once_ = std::size_t{1} << 18;
};

/// The parts of a data page, decompressed.
struct page_body {
  std::span<const char> repetition;
  std::span<const char> definition;
  std::span<const char> values;
};

/// Reads the pages of a column of a row group, one after the other.
class page_reader {
 public:
  /// Call restart() before anything else.
  page_reader(const selected_columns& columns, const selected_leaf& leaf);
  page_reader(const selected_columns& columns, const selected_leaf& leaf, std::size_t row_group)
      : page_reader(columns, leaf) {
    restart(row_group);
  }

  /// Begins with the first page of a row group, and keeps the memory.
  void restart(std::size_t row_group);
  const column_chunk& chunk() const { return columns_->chunk(place_.row_group, *place_.leaf); }

  /// Continues at the page with this offset. @pre it lies in the column
  void go_to(std::uint64_t page_offset) noexcept { window_.skip(page_offset - window_.offset()); }
  /// Reads the same column from its first page.
  page_reader from_start() const { return {*columns_, *place_.leaf, place_.row_group}; }

  /// Prepares for reading headers alone.
  void read_little() noexcept { window_.read_at_once(std::size_t{1} << 12); }
  void read_much() noexcept { window_.read_at_once(std::size_t{1} << 18); }

  /// Reads the header of the next data page or dictionary page. Then call `skip`, `load` or
  /// `load_dictionary`.
  ///
  /// @return null at the end
  const page_header* next();
  void skip();

  /// The body is valid until the next call, and may be read `padding_bytes` past its end.
  page_body load();
  /// Keeps the body in `to`. @return its size in bytes
  std::size_t load_dictionary(buffer& to);

  const place& where() const noexcept { return place_; }

 private:
  void read_header();
  void check_crc(std::span<const char> body) const;
  std::span<const char> decompressed(std::span<const char> body, std::size_t size, buffer& to);
  page_body split_v1(std::span<const char> bytes) const;
  page_body load_v2(std::span<const char> body);

  const selected_columns* columns_;
  place place_;
  codec compression_ = codec::uncompressed;
  std::unique_ptr<page_codec> codec_;
  byte_window window_;
  page_header header_;
  buffer decompressed_;
};

}  // namespace millrace::parquet::detail
