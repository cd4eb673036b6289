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
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/dtype.hpp>

/// Megatron's `.idx`, as bytes. Specification: formats/spec/mmidx.md.
///
// Example:
//
//     const millrace::io::file_mapping file("web_text_document.idx");
//     const auto idx = millrace::formats::parse_mmidx(file.bytes());
//     std::int64_t tokens = 0;
//     for (std::size_t i = 0; i < idx.lengths.size(); ++i) tokens += idx.lengths[i];

///   0   9     magic "MMIDIDX\0\0"
///   9   8     u64 version, 1
///   17  1     u8 dtype code
///   18  8     u64 S, number of sequences
///   26  8     u64 D, length of the document index: number of documents + 1
///   34  4*S   i32 lengths, in tokens
///       8*S   i64 pointers, byte offset of each sequence in the `.bin`
///       8*D   i64 document index: sequence at which each document starts, then S
///       S     i8 modes, only in multimodal datasets (only the file size shows if there are any)
namespace millrace::formats {

inline constexpr std::array<unsigned char, 9> mmidx_magic = {'M', 'M', 'I', 'D', 'I',
                                                             'D', 'X', 0,   0};
inline constexpr std::uint64_t mmidx_version = 1;
inline constexpr std::size_t mmidx_header_bytes = 34;

struct mmidx_header {
  std::uint64_t version = mmidx_version;
  std::uint8_t dtype_code = 0;
  std::uint64_t sequence_count = 0;
  std::uint64_t document_index_size = 0;
};

/// Lists the header's fields after the magic, in file order. The reader and the writer share this
/// list.
template <class Io, class Header>
requires std::is_same_v<std::remove_const_t<Header>, mmidx_header>
void fields(Io& io, Header& header) {
  io("the version", header.version);
  io("the dtype code", header.dtype_code);
  io("the sequence count", header.sequence_count);
  io("the document index size", header.document_index_size);
}

/// The position and size of each array in an `.idx`, from its header and the size of the file.
struct mmidx_layout {
  dtype type = dtype::uint16;
  std::uint64_t sequences = 0;
  std::uint64_t document_index_size = 0;
  bool has_modes = false;

  std::int64_t sequence_count() const noexcept { return static_cast<std::int64_t>(sequences); }
  std::int64_t document_count() const noexcept {
    return static_cast<std::int64_t>(document_index_size) - 1;
  }

  std::uint64_t lengths_offset() const noexcept { return mmidx_header_bytes; }
  std::uint64_t pointers_offset() const noexcept { return lengths_offset() + 4 * sequences; }
  std::uint64_t document_index_offset() const noexcept { return pointers_offset() + 8 * sequences; }
  std::uint64_t modes_offset() const noexcept {
    return document_index_offset() + 8 * document_index_size;
  }
};

/// A parsed `.idx`. Refers to the bytes that it was parsed from, which must outlive it.
struct mmidx_view : mmidx_layout {
  unaligned_span<std::int32_t> lengths;         ///< [sequence_count], tokens
  unaligned_span<std::int64_t> pointers;        ///< [sequence_count], bytes into the `.bin`
  unaligned_span<std::int64_t> document_index;  ///< [document_count + 1], sequences
  unaligned_span<std::int8_t> modes;            ///< [sequence_count], or empty
  /// The byte of the `.bin` at which the last sequence ends; 0 for a dataset without sequences.
  std::uint64_t bin_size_bytes = 0;
};

/// Parses the header and checks its counts against the size of the file.
///
/// @param head       the first `mmidx_header_bytes` of the file, or the whole file if it is shorter
/// @param file_size  in bytes
/// @throws format_error  the header is invalid, or its counts do not fit the size of the file.
mmidx_layout parse_mmidx_layout(std::span<const std::byte> head, std::uint64_t file_size);

/// Checks the first and last entries of the arrays: checks 9 to 12 of formats/spec/mmidx.md.
/// Fetches the entries through `read`, so the file need not be in memory.
///
/// @param read  `read(offset, value)` fills `value`, an int32 or int64, from byte `offset` of the
///              file
/// @return the byte of the `.bin` at which the last sequence ends; 0 if there are no sequences
/// @throws format_error  an entry is invalid or contradicts the header.
template <class Read>
std::uint64_t check_mmidx_edges(const mmidx_layout& layout, Read&& read);

/// Parses an `.idx` in O(1). Makes the checks listed under "At open" in formats/spec/mmidx.md.
///
/// Does not look at entries in the middle of the arrays. Code that uses such an entry must check
/// the entry first; `verify_mmidx` checks all entries.
///
/// @throws format_error  the bytes are not a complete `.idx`, or contradict each other.
mmidx_view parse_mmidx(std::span<const std::byte> file);

/// The first `mmidx_header_bytes` of an `.idx`.
std::vector<std::byte> encode_mmidx_header(dtype type, std::uint64_t sequence_count,
                                           std::uint64_t document_count);

/// Encodes a complete `.idx`. Computes the pointers from `lengths`. `modes` is empty or has one
/// entry per sequence.
///
/// @pre `document_index` starts with 0 and ends with lengths.size(), as on disk; no length is
///      negative
std::vector<std::byte> encode_mmidx(dtype type, std::span<const std::int32_t> lengths,
                                    std::span<const std::int64_t> document_index,
                                    std::span<const std::int8_t> modes = {});

// ---------------------------------------------------------------------------------------------

inline mmidx_layout parse_mmidx_layout(std::span<const std::byte> head, std::uint64_t file_size) {
  byte_reader reader(head);
  const auto magic = reader.take("the magic", mmidx_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != mmidx_magic[i]) {
      throw format_error(i, "not an .idx file: expected the magic \"MMIDIDX\\0\\0\"");
    }
  }
  mmidx_header header;
  fields(reader, header);
  if (header.version != mmidx_version) {
    throw format_error(9, "expected .idx version 1, found " + std::to_string(header.version));
  }
  const auto type = dtype_from_code(header.dtype_code);
  if (!type) {
    throw format_error(
        17, "expected a dtype code from 1 to 8, found " + std::to_string(header.dtype_code));
  }
  const std::uint64_t sequences = header.sequence_count;
  const std::uint64_t ends = header.document_index_size;
  // Divide instead of multiplying, because with a hostile count, a product could wrap.
  const std::uint64_t room = file_size - mmidx_header_bytes;
  if (sequences > room / 12) {
    throw format_error(18, "the header counts " + std::to_string(sequences) +
                               " sequences, more than the " + std::to_string(file_size) +
                               " bytes of the file can hold");
  }
  if (ends == 0) {
    throw format_error(26, "the document index is empty, expected at least its leading 0");
  }
  if (ends > (room - 12 * sequences) / 8) {
    throw format_error(26, "the header counts " + std::to_string(ends) +
                               " document index entries, more than the " +
                               std::to_string(file_size) + " bytes of the file can hold");
  }
  mmidx_layout layout{*type, sequences, ends, false};
  const std::uint64_t left = file_size - layout.modes_offset();
  if (left != 0 && left != sequences) {
    throw format_error(layout.modes_offset(), std::to_string(left) +
                                                  " bytes follow the document index, expected 0, "
                                                  "or " +
                                                  std::to_string(sequences) + " for the modes");
  }
  layout.has_modes = left != 0;
  return layout;
}

template <class Read>
std::uint64_t check_mmidx_edges(const mmidx_layout& layout, Read&& read) {
  std::int64_t entry = 0;
  read(layout.document_index_offset(), entry);
  if (entry != 0) {
    throw format_error(layout.document_index_offset(),
                       "the document index starts with " + std::to_string(entry) + ", expected 0");
  }
  const std::uint64_t last_end =
      layout.document_index_offset() + 8 * (layout.document_index_size - 1);
  read(last_end, entry);
  if (entry != static_cast<std::int64_t>(layout.sequences)) {
    throw format_error(last_end, "the document index ends with " + std::to_string(entry) +
                                     ", expected " + std::to_string(layout.sequences) +
                                     ", the number of sequences");
  }
  if (layout.sequences == 0) return 0;
  read(layout.pointers_offset(), entry);
  if (entry != 0) {
    throw format_error(
        layout.pointers_offset(),
        "the first sequence starts at byte " + std::to_string(entry) + " of the .bin, expected 0");
  }
  const std::uint64_t last = layout.sequences - 1;
  std::int32_t length = 0;
  read(layout.lengths_offset() + 4 * last, length);
  if (length < 0) {
    throw format_error(layout.lengths_offset() + 4 * last,
                       "the last length is " + std::to_string(length) + ", expected 0 or more");
  }
  read(layout.pointers_offset() + 8 * last, entry);
  if (entry < 0) {
    throw format_error(layout.pointers_offset() + 8 * last,
                       "the last pointer is " + std::to_string(entry) + ", expected 0 or more");
  }
  // At most 2^63 - 1 + 2^31 * 8, which fits an unsigned 64-bit number.
  return static_cast<std::uint64_t>(entry) +
         static_cast<std::uint64_t>(length) * size_bytes(layout.type);
}

inline mmidx_view parse_mmidx(std::span<const std::byte> file) {
  mmidx_view idx;
  static_cast<mmidx_layout&>(idx) = parse_mmidx_layout(
      file.first(std::min<std::size_t>(file.size(), mmidx_header_bytes)), file.size());
  idx.bin_size_bytes = check_mmidx_edges(idx, [&](std::uint64_t offset, auto& value) {
    std::memcpy(&value, file.data() + offset, sizeof(value));
  });
  idx.lengths = unaligned_span<std::int32_t>(file.subspan(idx.lengths_offset(), 4 * idx.sequences));
  idx.pointers =
      unaligned_span<std::int64_t>(file.subspan(idx.pointers_offset(), 8 * idx.sequences));
  idx.document_index = unaligned_span<std::int64_t>(
      file.subspan(idx.document_index_offset(), 8 * idx.document_index_size));
  idx.modes = unaligned_span<std::int8_t>(file.subspan(idx.modes_offset()));
  return idx;
}

inline std::vector<std::byte> encode_mmidx_header(dtype type, std::uint64_t sequence_count,
                                                  std::uint64_t document_count) {
  byte_writer writer;
  writer.put(std::as_bytes(std::span(mmidx_magic)));
  const mmidx_header header{mmidx_version, static_cast<std::uint8_t>(type), sequence_count,
                            document_count + 1};
  fields(writer, header);
  return writer.take();
}

inline std::vector<std::byte> encode_mmidx(dtype type, std::span<const std::int32_t> lengths,
                                           std::span<const std::int64_t> document_index,
                                           std::span<const std::int8_t> modes) {
  assert(!document_index.empty() && document_index.front() == 0);
  assert(static_cast<std::uint64_t>(document_index.back()) == lengths.size());
  assert(modes.empty() || modes.size() == lengths.size());
  byte_writer writer;
  writer.put(encode_mmidx_header(type, lengths.size(), document_index.size() - 1));
  writer.put(std::as_bytes(lengths));
  std::int64_t pointer = 0;
  for (const std::int32_t length : lengths) {
    writer("a pointer", pointer);
    pointer += static_cast<std::int64_t>(length) * static_cast<std::int64_t>(size_bytes(type));
  }
  writer.put(std::as_bytes(document_index));
  writer.put(std::as_bytes(modes));
  return writer.take();
}

}  // namespace millrace::formats
