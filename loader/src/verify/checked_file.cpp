// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/verify/checked_file.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/dtype.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/sigbus_guard.hpp>
#include <millrace/loader/detail/verify/token_range.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::optional<checked_file::problem> checked_file::check_tokens(
    std::span<const std::byte> bytes, std::uint64_t offset, std::int64_t vocab_size) const {
  if (vocab_size == 0 || !ids_) return std::nullopt;
  const std::size_t width = formats::size_bytes(*ids_);
  const std::size_t place = find_outside(bytes, *ids_, vocab_size);
  if (place == bytes.size() / width) return std::nullopt;
  return problem{true, offset + place * width,
                 "token " + std::to_string(offset / width + place) + " of the file is " +
                     std::to_string(token_at(bytes, *ids_, place)) + ", expected 0 to " +
                     std::to_string(vocab_size - 1) + " (vocab_size)"};
}

// Reads through the map, if there is one. If the map has lost a page, falls back to a read from the
// file, whose error names the cause.
MILLRACE_INLINE void checked_file::read(const io::unique_fd& fd, const open_files::map* map,
                                        std::span<std::byte> piece, std::uint64_t at,
                                        io::page_cache pages) const {
  if (map != nullptr) {
    const std::byte* begin = map->bytes.data();
    const copy_piece whole{begin + (at - map->bytes.offset()), piece.data(), piece.size()};
    if (copy_pieces({&whole, 1}, begin, begin + map->bytes.bytes()) == 1) return;
  }
  const std::size_t read = io::pread_some(fd, piece, at, path(), pages);
  if (read == piece.size()) return;
  throw io_error(path(), "read", ENODATA, at + read,
                 "it ends there, but should have " + std::to_string(size_) +
                     " bytes according to its index; it was truncated: restore it");
}

MILLRACE_INLINE std::optional<checked_file::problem> checked_file::check(
    const io::unique_fd& fd, const open_files::map* map, std::uint64_t block,
    std::optional<std::uint32_t> expected, std::int64_t vocab_size, std::span<std::byte> buffer,
    io::page_cache pages) const {
  const std::uint64_t end = last_byte(block);
  std::uint32_t crc = 0;
  std::optional<problem> token;
  for (std::uint64_t at = first_byte(block); at < end; at += buffer.size()) {
    const auto piece =
        buffer.first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - at)));
    read(fd, map, piece, at, pages);
    if (expected) crc = formats::crc32c(piece, crc);
    if (!token) token = check_tokens(piece, at, vocab_size);
  }
  // Compares the checksum first, because an invalid token has no meaning in corrupt bytes.
  if (expected && crc != *expected) {
    return problem{false, first_byte(block),
                   "block " + std::to_string(block) + ", the bytes " +
                       std::to_string(first_byte(block)) + " to " + std::to_string(end - 1) +
                       ", has changed since it was written: its checksum is " + formats::hex(crc) +
                       ", expected " + formats::hex(*expected)};
  }
  return token;
}

}  // namespace millrace::loader
