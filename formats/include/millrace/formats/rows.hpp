// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

/// `P.rows-L`: how many rows of L tokens the documents of a dataset are packed into. Specification:
/// formats/spec/rows.md.
///
// Example:
//
//     const millrace::io::file_mapping file("web_text_document.rows-4096");
//     const auto rows = millrace::formats::parse_rows(file.bytes());
//     const std::int64_t count = rows.ends.empty() ? 0 : rows.ends[rows.ends.size() - 1];

///   0   8     magic "MILLROWS"
///   8   4     u32 version, 1
///   12  4     u32 documents per block, 4096
///   16  56    seven i64: seq_len, pad_documents_to, first and last document, tokens,
///             bytes of the .idx, bytes of the .bin
///   72  4     u32 CRC-32C of the lengths and the document index of the .idx
///   76  4     u32 1 if the next field holds a root, otherwise 0
///   80  32    the root of the .sum, or zeros
///   112 8*B   i64 for each block: number of rows in this block and all before it
///       4     u32 CRC-32C of all bytes before it
namespace millrace::formats {

inline constexpr std::array<unsigned char, 8> rows_magic = {'M', 'I', 'L', 'L', 'R', 'O', 'W', 'S'};
inline constexpr std::uint32_t rows_version = 1;
inline constexpr std::uint32_t rows_block_documents = 4096;
inline constexpr std::size_t rows_header_bytes = 112;

struct rows_header {
  std::uint32_t version = rows_version;
  std::uint32_t block_documents = rows_block_documents;
  std::int64_t seq_len = 1;
  std::int64_t pad_documents_to = 1;
  std::int64_t first_document = 0;  ///< first packed document
  std::int64_t last_document = 0;   ///< end of the packed documents, exclusive
  std::int64_t tokens = 0;          ///< tokens in the packed documents
  std::int64_t idx_bytes = 0;
  std::int64_t bin_bytes = 0;
  std::uint32_t idx_crc = 0;   ///< CRC-32C of the lengths and the document index of the `.idx`
  std::uint32_t has_root = 0;  ///< 1 if the dataset had a `.sum`, else 0
  std::array<std::byte, 32> root{};

  /// The number of blocks of documents. The last block may have fewer documents.
  ///
  /// @pre 0 <= first_document <= last_document
  std::uint64_t block_count() const noexcept {
    const auto documents = static_cast<std::uint64_t>(last_document - first_document);
    return documents / rows_block_documents + (documents % rows_block_documents != 0 ? 1 : 0);
  }
  friend bool operator==(const rows_header&, const rows_header&) = default;
};

/// Lists the header's fields after the magic, in file order, without the root. The reader and the
/// writer share this list.
template <class Io, class Header>
requires std::is_same_v<std::remove_const_t<Header>, rows_header>
void fields(Io& io, Header& header) {
  io("the version", header.version);
  io("the block size", header.block_documents);
  io("seq_len", header.seq_len);
  io("pad_documents_to", header.pad_documents_to);
  io("the first document", header.first_document);
  io("the last document", header.last_document);
  io("the tokens", header.tokens);
  io("the size of the .idx", header.idx_bytes);
  io("the size of the .bin", header.bin_bytes);
  io("the checksum of the .idx", header.idx_crc);
  io("the root flag", header.has_root);
}

/// A parsed table. `ends` refers to the bytes that it was parsed from, which must outlive it.
struct rows_view {
  rows_header header;
  unaligned_span<std::int64_t> ends;  ///< [block_count()]: rows in each block and all before it
};

/// Parses a table. Makes the checks listed under "At open" in formats/spec/rows.md.
///
/// @throws format_error  the bytes are not a complete table, or contradict each other.
rows_view parse_rows(std::span<const std::byte> file);

/// Encodes a complete table.
///
/// @pre ends.size() == header.block_count()
std::vector<std::byte> encode_rows(const rows_header& header, std::span<const std::int64_t> ends);

// ---------------------------------------------------------------------------------------------

namespace detail {

inline void check_rows_header(const rows_header& header) {
  const auto refuse = [](std::uint64_t offset, const std::string& what, std::int64_t value,
                         const std::string& expected) {
    throw format_error(offset, what + " is " + std::to_string(value) + ", expected " + expected);
  };
  if (header.version != rows_version) refuse(8, "the version", header.version, "1");
  if (header.block_documents != rows_block_documents) {
    refuse(12, "the block size", header.block_documents, std::to_string(rows_block_documents));
  }
  if (header.seq_len < 1) refuse(16, "seq_len", header.seq_len, "1 or more");
  if (header.pad_documents_to < 1 || header.seq_len % header.pad_documents_to != 0) {
    refuse(24, "pad_documents_to", header.pad_documents_to,
           "a divisor of the " + std::to_string(header.seq_len) + " tokens of a row");
  }
  if (header.first_document < 0) {
    refuse(32, "the first document", header.first_document, "0 or more");
  }
  if (header.last_document < header.first_document) {
    refuse(40, "the end of the documents", header.last_document,
           std::to_string(header.first_document) + " or more");
  }
  if (header.tokens < 0) refuse(48, "the number of tokens", header.tokens, "0 or more");
  if (header.has_root > 1) refuse(76, "the root flag", header.has_root, "0 or 1");
}

}  // namespace detail

inline rows_view parse_rows(std::span<const std::byte> file) {
  byte_reader reader(file);
  const auto magic = reader.take("the magic", rows_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != rows_magic[i]) {
      throw format_error(i, "not a table of rows: expected the magic \"MILLROWS\"");
    }
  }
  rows_view rows;
  fields(reader, rows.header);
  const auto root = reader.take("the root", rows.header.root.size());
  std::memcpy(rows.header.root.data(), root.data(), root.size());
  detail::check_rows_header(rows.header);
  const std::uint64_t blocks = rows.header.block_count();  // below 2^52, so `expected` cannot wrap
  const std::uint64_t expected = rows_header_bytes + 8 * blocks + 4;
  if (file.size() != expected) {
    throw format_error(std::min<std::uint64_t>(file.size(), expected),
                       "the file has " + std::to_string(file.size()) + " bytes, expected " +
                           std::to_string(expected) + " for " + std::to_string(blocks) +
                           " blocks of documents");
  }
  rows.ends = unaligned_span<std::int64_t>(reader.take("the rows", 8 * blocks));
  const std::uint32_t crc = crc32c(file.first(reader.offset()));
  std::uint32_t found = 0;
  reader("the checksum", found);
  if (found != crc) {
    throw format_error(
        expected - 4,
        "expected " + hex(crc) + ", the checksum of the bytes before it, found " + hex(found));
  }
  std::int64_t before = 0;
  for (std::size_t b = 0; b < rows.ends.size(); ++b) {
    if (rows.ends[b] < before) {
      throw format_error(rows_header_bytes + 8 * b,
                         "the number of rows up to a block is " + std::to_string(rows.ends[b]) +
                             ", expected at least the " + std::to_string(before) +
                             " up to the previous block");
    }
    before = rows.ends[b];
  }
  return rows;
}

inline std::vector<std::byte> encode_rows(const rows_header& header,
                                          std::span<const std::int64_t> ends) {
  assert(ends.size() == header.block_count());
  byte_writer writer;
  writer.put(std::as_bytes(std::span(rows_magic)));
  fields(writer, header);
  writer.put(header.root);
  writer.put(std::as_bytes(ends));
  writer("the checksum", crc32c(writer.bytes()));
  return writer.take();
}

}  // namespace millrace::formats
