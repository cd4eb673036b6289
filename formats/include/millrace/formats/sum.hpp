// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/byte_writer.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>

/// `P.sum`: the checksums of `P.bin` and `P.idx`. Specification: formats/spec/sum.md.
///
// Example:
//
//     const millrace::io::file_mapping file("web_text_document.sum");
//     const auto sum = millrace::formats::parse_sum(file.bytes());
//     std::cout << sum.bin_bytes << " bytes, root " << root_hex(sum) << '\n';

///   0   8     magic "MILLSUM\0"
///   8   4     u32 version: 1, or 2 if a repair computed the checksums
///   12  4     u32 block size, 2^20
///   16  8     u64 bytes of the .bin
///   24  8     u64 bytes of the .idx
///   32  4*B   u32 CRC-32C of each block of the .bin
///       4*I   u32 CRC-32C of each block of the .idx
///       32    the root: SHA-256 of all bytes before it
namespace millrace::formats {

inline constexpr std::array<unsigned char, 8> sum_magic = {'M', 'I', 'L', 'L', 'S', 'U', 'M', 0};
/// The checksums were computed when the files were written.
inline constexpr std::uint32_t sum_version = 1;
/// The checksums were computed later, so changes before that are unknown.
inline constexpr std::uint32_t sum_version_repaired = 2;
inline constexpr std::uint32_t sum_block_bytes = 1U << 20;
inline constexpr std::size_t sum_header_bytes = 32;
inline constexpr std::size_t sum_root_bytes = 32;

struct sum_header {
  std::uint32_t version = sum_version;
  std::uint32_t block_bytes = sum_block_bytes;
  std::uint64_t bin_bytes = 0;
  std::uint64_t idx_bytes = 0;
};

/// Lists the header's fields after the magic, in file order. The reader and the writer share this
/// list.
template <class Io, class Header>
requires std::is_same_v<std::remove_const_t<Header>, sum_header>
void fields(Io& io, Header& header) {
  io("the version", header.version);
  io("the block size", header.block_bytes);
  io("the size of the .bin", header.bin_bytes);
  io("the size of the .idx", header.idx_bytes);
}

/// The number of blocks in a file of `size` bytes. The last block may be short.
constexpr std::uint64_t sum_block_count(std::uint64_t size) noexcept {
  return size / sum_block_bytes + (size % sum_block_bytes != 0 ? 1 : 0);
}

/// A parsed `.sum`. Refers to the bytes that it was parsed from, which must outlive it.
struct sum_view {
  std::uint32_t version = sum_version;
  std::uint64_t bin_bytes = 0;
  std::uint64_t idx_bytes = 0;
  unaligned_span<std::uint32_t> bin_blocks;  ///< [sum_block_count(bin_bytes)], CRC-32C
  unaligned_span<std::uint32_t> idx_blocks;  ///< [sum_block_count(idx_bytes)], CRC-32C
  std::span<const std::byte> root;           ///< [32]
};

/// Parses a `.sum` and checks its root, which takes one SHA-256 of the file. The `.sum` of a 400 GB
/// dataset takes 1.5 MB.
///
/// @throws format_error  the bytes are not a complete `.sum`, or do not match the root.
sum_view parse_sum(std::span<const std::byte> file);

/// Parses the header and checks the size of the file. Needs only the first bytes of the file.
///
/// @param begin       the first `sum_header_bytes` of the file, or the whole file if it is shorter
/// @param file_bytes  size of the file in bytes
/// @throws format_error  the header is invalid, or the size of the file does not match the header.
sum_header parse_sum_header(std::span<const std::byte> begin, std::uint64_t file_bytes);

/// The root as 64 lower-case hexadecimal digits.
std::string root_hex(const sum_view& sum);

/// Encodes the first `sum_header_bytes` of a `.sum`. The header's size is fixed, so a writer can
/// start with a placeholder and replace it at the end.
std::vector<std::byte> encode_sum_header(std::uint64_t bin_bytes, std::uint64_t idx_bytes,
                                         std::uint32_t version = sum_version);

/// Encodes a whole `.sum`, for files whose checksums fit in memory.
/// @pre the number of block checksums of each file matches the size of that file
std::vector<std::byte> encode_sum(std::uint64_t bin_bytes,
                                  std::span<const std::uint32_t> bin_blocks,
                                  std::uint64_t idx_bytes,
                                  std::span<const std::uint32_t> idx_blocks,
                                  std::uint32_t version = sum_version);

/// Computes the checksum of each block of a file. The caller passes the bytes in pieces of any
/// size, front to back. Not thread-safe.
///
/// To resume in another process, save `state` together with the first `state.size` bytes of the
/// file.
class block_checksums {
 public:
  struct state {
    std::uint64_t size = 0;  ///< bytes added so far
    std::uint32_t crc = 0;   ///< CRC of the bytes in the unfinished block
  };

  block_checksums() = default;
  explicit block_checksums(const state& saved) noexcept : state_(saved) {}

  /// Takes the next bytes. For each block that these bytes complete, appends its CRC to
  /// `completed`.
  void add(std::span<const std::byte> bytes, std::vector<std::uint32_t>& completed);

  /// Appends the CRC of the last block if it is short. Call this function after all bytes were
  /// added.
  void finish(std::vector<std::uint32_t>& completed) const;

  const state& save() const noexcept { return state_; }

 private:
  state state_;
};
static_assert(std::is_trivially_copyable_v<block_checksums::state>);

// ---------------------------------------------------------------------------------------------

inline sum_header parse_sum_header(std::span<const std::byte> begin, std::uint64_t file_bytes) {
  byte_reader reader(begin);
  const auto magic = reader.take("the magic", sum_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != sum_magic[i]) {
      throw format_error(i, "not a .sum file: expected the magic \"MILLSUM\\0\"");
    }
  }
  sum_header header;
  fields(reader, header);
  if (header.version != sum_version && header.version != sum_version_repaired) {
    throw format_error(8, "expected .sum version 1 or 2, found " + std::to_string(header.version));
  }
  if (header.block_bytes != sum_block_bytes) {
    throw format_error(12, "expected blocks of " + std::to_string(sum_block_bytes) +
                               " bytes, found " + std::to_string(header.block_bytes));
  }
  // Each file has at most 2^44 blocks, so neither the sum of the two counts nor four times this sum
  // can wrap.
  const std::uint64_t bin_blocks = sum_block_count(header.bin_bytes);
  const std::uint64_t idx_blocks = sum_block_count(header.idx_bytes);
  const std::uint64_t expected = sum_header_bytes + 4 * (bin_blocks + idx_blocks) + sum_root_bytes;
  if (file_bytes != expected) {
    throw format_error(std::min(file_bytes, expected),
                       "the file has " + std::to_string(file_bytes) + " bytes, expected " +
                           std::to_string(expected) + " for a .bin of " +
                           std::to_string(header.bin_bytes) + " and an .idx of " +
                           std::to_string(header.idx_bytes) + " bytes");
  }
  return header;
}

inline sum_view parse_sum(std::span<const std::byte> file) {
  const sum_header header = parse_sum_header(file, file.size());
  byte_reader reader(file);
  (void)reader.take("the header", sum_header_bytes);
  sum_view sum{header.version, header.bin_bytes, header.idx_bytes, {}, {}, {}};
  sum.bin_blocks = unaligned_span<std::uint32_t>(
      reader.take("the .bin's blocks", 4 * sum_block_count(header.bin_bytes)));
  sum.idx_blocks = unaligned_span<std::uint32_t>(
      reader.take("the .idx's blocks", 4 * sum_block_count(header.idx_bytes)));
  const std::size_t root_at = reader.offset();
  sum.root = reader.take("the root", sum_root_bytes);
  const auto root = sha256().update(file.first(root_at)).finish();
  if (!std::ranges::equal(sum.root, std::as_bytes(std::span(root)))) {
    throw format_error(root_at, "the root does not match the checksums: expected " +
                                    sha256_hex(file.first(root_at)) + ", found " + root_hex(sum));
  }
  return sum;
}

inline std::string root_hex(const sum_view& sum) {
  return hex(sum.root);
}

inline std::vector<std::byte> encode_sum_header(std::uint64_t bin_bytes, std::uint64_t idx_bytes,
                                                std::uint32_t version) {
  byte_writer writer;
  writer.put(std::as_bytes(std::span(sum_magic)));
  const sum_header header{version, sum_block_bytes, bin_bytes, idx_bytes};
  fields(writer, header);
  return writer.take();
}

inline std::vector<std::byte> encode_sum(std::uint64_t bin_bytes,
                                         std::span<const std::uint32_t> bin_blocks,
                                         std::uint64_t idx_bytes,
                                         std::span<const std::uint32_t> idx_blocks,
                                         std::uint32_t version) {
  assert(bin_blocks.size() == sum_block_count(bin_bytes));
  assert(idx_blocks.size() == sum_block_count(idx_bytes));
  byte_writer writer;
  writer.put(encode_sum_header(bin_bytes, idx_bytes, version));
  writer.put(std::as_bytes(bin_blocks));
  writer.put(std::as_bytes(idx_blocks));
  const auto root = sha256().update(writer.bytes()).finish();
  writer.put(std::as_bytes(std::span(root)));
  return writer.take();
}

inline void block_checksums::add(std::span<const std::byte> bytes,
                                 std::vector<std::uint32_t>& completed) {
  while (!bytes.empty()) {
    const std::size_t room = sum_block_bytes - state_.size % sum_block_bytes;
    const auto part = bytes.first(std::min(bytes.size(), room));
    state_.crc = crc32c(part, state_.crc);
    state_.size += part.size();
    if (part.size() == room) {
      completed.push_back(state_.crc);
      state_.crc = 0;
    }
    bytes = bytes.subspan(part.size());
  }
}

inline void block_checksums::finish(std::vector<std::uint32_t>& completed) const {
  if (state_.size % sum_block_bytes != 0) completed.push_back(state_.crc);
}

}  // namespace millrace::formats
