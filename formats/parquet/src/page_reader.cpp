// SPDX-License-Identifier: Apache-2.0
#include "page_reader.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::parquet::detail {

namespace {

std::string column_of(const place& where) {
  return "column " + formats::in_quotes(where.leaf->name) + " of row group " +
         std::to_string(where.row_group) + ": ";
}

/// Takes levels, with their size in front, off the front of a page.
std::span<const char> take_levels(const place& where, encoding how, std::span<const char>& bytes) {
  if (how != encoding::rle) {
    where.refuse("the page at byte " + std::to_string(where.offset) +
                 " has levels of the encoding " + name_of(how) +
                 ", and only RLE can be read; write the file again with a newer program");
  }
  std::uint32_t size = 0;
  if (bytes.size() < sizeof size) where.fail("a page ends inside its levels");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes = bytes.subspan(sizeof size);
  if (size > bytes.size()) {
    where.fail("a page has levels of " + std::to_string(size) + " bytes, more than the page has");
  }
  const auto levels = bytes.first(size);
  bytes = bytes.subspan(size);
  return levels;
}

}  // namespace

void place::fail(const std::string& problem) const {
  throw format_error(file->path, offset, column_of(*this) + problem + "; the file is damaged");
}

void place::refuse(const std::string& problem) const {
  throw config_error(file->path.string() + ": " + column_of(*this) + problem);
}

void byte_window::fill(std::size_t bytes) {
  const std::size_t held = filled_ - at_;
  const std::uint64_t left_in_file = end_ - next_read_;
  const std::size_t wanted = std::max(bytes, at_once_);
  if (wanted > bytes_.capacity()) {
    buffer larger;
    char* to = larger.grow(wanted);
    if (held != 0) std::memcpy(to, bytes_.data() + at_, held);
    bytes_ = std::move(larger);
  } else if (held != 0) {
    std::memmove(bytes_.data(), bytes_.data() + at_, held);
  }
  at_ = 0;
  filled_ = held;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wanted - held, left_in_file));
  const std::span<char> out(bytes_.data() + held, size);
  if (io::pread_some(file_->fd, std::as_writable_bytes(out), next_read_, file_->path) != size) {
    throw io_error(file_->path, "read (the file became shorter)", ESTALE);
  }
  filled_ += size;
  next_read_ += size;
}

void byte_window::skip(std::uint64_t bytes) noexcept {
  const std::size_t held = filled_ - at_;
  if (bytes <= held) {
    at_ += static_cast<std::size_t>(bytes);
    return;
  }
  next_read_ += bytes - held;
  at_ = filled_ = 0;
}

page_reader::page_reader(const selected_columns& columns, const selected_leaf& leaf)
    : columns_(&columns), place_{&columns.contents(), &leaf, 0, 0}, window_(columns.contents()) {}

void page_reader::restart(std::size_t row_group) {
  place_.row_group = row_group;
  place_.offset = first_page(chunk());
  if (codec_ == nullptr || compression_ != chunk().compression) {
    compression_ = chunk().compression;
    codec_ = make_codec(compression_);
  }
  window_.restart(place_.offset, place_.offset + static_cast<std::uint64_t>(chunk().stored_bytes));
}

void page_reader::read_header() {
  constexpr std::size_t first_look = 1024;
  constexpr std::size_t most = std::size_t{1} << 26;
  for (std::size_t size = first_look;; size *= 4) {
    const auto looked = static_cast<std::size_t>(std::min<std::uint64_t>(size, window_.left()));
    thrift_reader in(window_.look(looked), window_.offset());
    try {
      header_ = parse_page_header(in);
      window_.skip(in.consumed());
      return;
    } catch (const format_error& e) {
      // Statistics can make a header long.
      if (!in.ended() || looked == window_.left() || size >= most) {
        place_.fail("the header of a page cannot be read: " + e.problem());
      }
    }
  }
}

const page_header* page_reader::next() {
  while (window_.left() != 0) {
    place_.offset = window_.offset();
    read_header();
    if (header_.stored_bytes < 0 || header_.uncompressed_bytes < 0 || header_.values < 0) {
      place_.fail("a page has a size below 0");
    }
    if (static_cast<std::uint64_t>(header_.stored_bytes) > window_.left()) {
      place_.fail("a page should have " + std::to_string(header_.stored_bytes) +
                  " bytes, but the column ends after " + std::to_string(window_.left()));
    }
    if (header_.is_data() || header_.type == page_type::dictionary) return &header_;
    skip();  // a page of another type is only useful to those who know it
  }
  return nullptr;
}

void page_reader::skip() {
  window_.skip(static_cast<std::uint64_t>(header_.stored_bytes));
}

void page_reader::check_crc(std::span<const char> body) const {
  if (!header_.crc) return;
  const auto found = static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size())));
  if (found != static_cast<std::uint32_t>(*header_.crc)) {
    place_.fail("a page does not have the checksum that its header states");
  }
}

std::span<const char> page_reader::decompressed(std::span<const char> body, std::size_t size,
                                                buffer& to) {
  if (codec_ == nullptr) {
    if (body.size() != size) {
      place_.fail("a page of " + std::to_string(body.size()) + " bytes should have " +
                  std::to_string(size) + ", although it is not compressed");
    }
    return body;
  }
  if (size == 0) return {to.grow(1), 0};  // some writers compress nothing, some leave nothing
  const std::string problem = codec_->decompress(body, size, to);
  if (!problem.empty()) {
    place_.fail("a page cannot be decompressed with " + name_of(compression_) + " to the " +
                std::to_string(size) + " bytes that its header states: " + problem);
  }
  return {to.data(), size};
}

page_body page_reader::load() {
  const auto body = window_.look(static_cast<std::size_t>(header_.stored_bytes));
  check_crc(body);
  skip();  // the bytes stay where they are until the next look
  if (header_.type == page_type::data_v2) return load_v2(body);
  return split_v1(
      decompressed(body, static_cast<std::size_t>(header_.uncompressed_bytes), decompressed_));
}

page_body page_reader::split_v1(std::span<const char> bytes) const {
  page_body body;
  if (place_.leaf->most_repetition != 0) {
    body.repetition = take_levels(place_, header_.repetition_encoding, bytes);
  }
  if (place_.leaf->most_definition != 0) {
    body.definition = take_levels(place_, header_.definition_encoding, bytes);
  }
  body.values = bytes;
  return body;
}

page_body page_reader::load_v2(std::span<const char> body) {
  const std::int64_t levels =
      std::int64_t{header_.definition_bytes} + std::int64_t{header_.repetition_bytes};
  if (header_.definition_bytes < 0 || header_.repetition_bytes < 0 ||
      levels > std::min(header_.stored_bytes, header_.uncompressed_bytes)) {
    place_.fail("a page has levels of more bytes than the page has");
  }
  page_body parts;
  parts.repetition = body.first(static_cast<std::size_t>(header_.repetition_bytes));
  parts.definition = body.subspan(static_cast<std::size_t>(header_.repetition_bytes),
                                  static_cast<std::size_t>(header_.definition_bytes));
  const auto values = body.subspan(static_cast<std::size_t>(levels));
  const std::size_t size =
      static_cast<std::size_t>(header_.uncompressed_bytes) - static_cast<std::size_t>(levels);
  if (header_.is_compressed) {
    parts.values = decompressed(values, size, decompressed_);
  } else if (values.size() != size) {
    place_.fail("a page that is not compressed has two sizes");
  } else {
    parts.values = values;
  }
  return parts;
}

std::size_t page_reader::load_dictionary(buffer& to) {
  const auto body = window_.look(static_cast<std::size_t>(header_.stored_bytes));
  check_crc(body);
  skip();
  const auto size = static_cast<std::size_t>(header_.uncompressed_bytes);
  const auto bytes = decompressed(body, size, to);
  if (bytes.data() != to.data() && size != 0) std::memcpy(to.grow(size), bytes.data(), size);
  return size;
}

}  // namespace millrace::parquet::detail
