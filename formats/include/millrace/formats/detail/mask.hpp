// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/detail/unaligned_span.hpp>
#include <millrace/formats/sum.hpp>

/// `P.mask`: one bit per token of `P.bin`, which says whether a model learns to predict the token.
/// Specification: formats/spec/mask.md.
///
///   0   8     magic "MILLMSK\0"
///   8   4     u32 version, 1
///   12  4     u32 block size, 2^20
///   16  8     u64 number of tokens, T
///   24  8     u64 number of bits that are 1
///   32  N     the bits, N = ceil(T / 8) bytes
///       4*B   u32 CRC-32C of each block of the N bytes
///       32    the root: SHA-256 of the header and the CRCs
namespace millrace::formats {

inline constexpr std::array<unsigned char, 8> mask_magic = {'M', 'I', 'L', 'L', 'M', 'S', 'K', 0};
inline constexpr std::uint32_t mask_version = 1;
inline constexpr std::size_t mask_header_bytes = 32;
inline constexpr std::size_t mask_root_bytes = 32;

struct mask_header {
  std::uint32_t version = mask_version;
  std::uint32_t block_bytes = sum_block_bytes;
  std::uint64_t tokens = 0;
  std::uint64_t trained = 0;
};

/// Lists the header's fields after the magic, in file order, for the reader and the writer.
template <class Io, class Header>
requires std::is_same_v<std::remove_const_t<Header>, mask_header>
void fields(Io& io, Header& header) {
  io("the version", header.version);
  io("the block size", header.block_bytes);
  io("the number of tokens", header.tokens);
  io("the number of trained tokens", header.trained);
}

/// The bytes that hold the bits of `tokens` tokens.
constexpr std::uint64_t mask_bit_bytes(std::uint64_t tokens) noexcept {
  return tokens / 8 + (tokens % 8 != 0 ? 1 : 0);
}

/// The size of a `.mask`.
/// @pre tokens <= 2^62
constexpr std::uint64_t mask_bytes(std::uint64_t tokens) noexcept {
  const std::uint64_t bits = mask_bit_bytes(tokens);
  return mask_header_bytes + bits + 4 * sum_block_count(bits) + mask_root_bytes;
}

/// Reads bits, the first of which is the least significant one of byte 0. The bytes must outlive
/// this object.
class bit_span {
 public:
  bit_span() = default;
  /// @pre bytes.size() >= mask_bit_bytes(size)
  bit_span(std::span<const std::byte> bytes, std::uint64_t size) noexcept
      : bytes_(bytes), size_(size) {
    assert(bytes.size() >= mask_bit_bytes(size));
  }

  std::uint64_t size() const noexcept { return size_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// @pre i < size()
  bool operator[](std::uint64_t i) const noexcept {
    assert(i < size_);
    return (std::to_integer<unsigned>(bytes_[i / 8]) >> (i % 8) & 1U) != 0;
  }

  /// The bits [first, first + count) as a number; the first one is the least significant.
  /// @pre count <= 64 and first + count <= size()
  std::uint64_t word(std::uint64_t first, unsigned count) const noexcept {
    assert(count <= 64 && count <= size_ - first);
    if (count == 0) return 0;
    const std::uint64_t begin = first / 8;
    const auto shift = static_cast<unsigned>(first % 8);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + begin,
                std::min<std::size_t>(sizeof(word), bytes_.size() - begin));
    word >>= shift;
    if (count + shift > 64)
      word |= std::to_integer<std::uint64_t>(bytes_[begin + 8]) << (64 - shift);
    return count == 64 ? word : word & ((std::uint64_t{1} << count) - 1);
  }

  /// The number of bits in [first, last) that are 1.
  /// @pre first <= last <= size()
  std::uint64_t count(std::uint64_t first, std::uint64_t last) const noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t at = first; at < last;) {
      const auto part = static_cast<unsigned>(std::min<std::uint64_t>(64, last - at));
      sum += static_cast<std::uint64_t>(std::popcount(word(at, part)));
      at += part;
    }
    return sum;
  }

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t size_ = 0;
};

/// Copies the bits [first, first + count) to the place `at` of other bits, which are 0 there. Bit i
/// % 32 of word i / 32 of `to` is bit i.
/// @pre first + count <= from.size() and at + count <= 32 * to.size()
inline void copy_bits(const bit_span& from, std::uint64_t first, std::uint64_t count,
                      std::span<std::uint32_t> to, std::uint64_t at) {
  while (count != 0) {
    const auto shift = static_cast<unsigned>(at % 32);
    const auto part = static_cast<unsigned>(std::min<std::uint64_t>(32 - shift, count));
    to[at / 32] |= static_cast<std::uint32_t>(from.word(first, part)) << shift;
    first += part;
    at += part;
    count -= part;
  }
}

/// Bits in memory, to which more can be appended.
class bit_buffer {
 public:
  std::uint64_t size() const noexcept { return size_; }
  bit_span bits() const noexcept { return {std::as_bytes(std::span(words_)), size_}; }

  void clear() noexcept {
    words_.clear();
    size_ = 0;
  }
  /// Drops all bits but the first `size`.
  /// @pre size <= size()
  void resize_down(std::uint64_t size) {
    assert(size <= size_);
    size_ = size;
    words_.resize(size / 64 + (size % 64 != 0 ? 1 : 0));
    if (size % 64 != 0) words_.back() &= (std::uint64_t{1} << (size % 64)) - 1;
  }

  /// Appends the low `count` bits of a number, whose other bits are 0.
  /// @pre count <= 64
  void append_word(std::uint64_t word, unsigned count) {
    if (count == 0) return;
    const auto used = static_cast<unsigned>(size_ % 64);
    if (used == 0) {
      words_.push_back(word);
    } else {
      words_.back() |= word << used;
      if (used + count > 64) words_.push_back(word >> (64 - used));
    }
    size_ += count;
  }
  void append_run(bool bit, std::uint64_t count) {
    for (; count != 0; count -= std::min<std::uint64_t>(64, count)) {
      const auto part = static_cast<unsigned>(std::min<std::uint64_t>(64, count));
      append_word(bit ? ~std::uint64_t{0} >> (64 - part) : 0, part);
    }
  }
  /// Appends the bits [first, last) of others.
  void append(const bit_span& from, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t at = first; at < last;) {
      const auto part = static_cast<unsigned>(std::min<std::uint64_t>(64, last - at));
      append_word(from.word(at, part), part);
      at += part;
    }
  }

 private:
  std::vector<std::uint64_t> words_;  // unused bits are 0
  std::uint64_t size_ = 0;
};

/// A parsed `.mask`. Refers to the bytes that it was parsed from, which must outlive it.
struct mask_view {
  std::uint64_t trained = 0;             ///< number of bits that are 1, as the header says
  bit_span bits;                         ///< bit t: the token t is to be predicted
  unaligned_span<std::uint32_t> blocks;  ///< CRC-32C of each MiB of the bits
  std::span<const std::byte> root;       ///< [32]

  std::uint64_t token_count() const noexcept { return bits.size(); }
};

/// Parses the header and checks the size of the file. Needs only the first bytes of the file.
///
/// @param begin       the first `mask_header_bytes` of the file, or the whole file if it is shorter
/// @param file_bytes  size of the file in bytes
/// @throws format_error  the header is invalid, or the size of the file does not match the header.
inline mask_header parse_mask_header(std::span<const std::byte> begin, std::uint64_t file_bytes) {
  byte_reader reader(begin);
  const auto magic = reader.take("the magic", mask_magic.size());
  for (std::size_t i = 0; i < magic.size(); ++i) {
    if (std::to_integer<unsigned char>(magic[i]) != mask_magic[i]) {
      throw format_error(i, "not a .mask file: expected the magic \"MILLMSK\\0\"");
    }
  }
  mask_header header;
  fields(reader, header);
  if (header.version != mask_version) {
    throw format_error(8, "expected .mask version 1, found " + std::to_string(header.version));
  }
  if (header.block_bytes != sum_block_bytes) {
    throw format_error(12, "expected blocks of " + std::to_string(sum_block_bytes) +
                               " bytes, found " + std::to_string(header.block_bytes));
  }
  constexpr std::uint64_t most_tokens = std::uint64_t{1} << 62;  // so that no size can wrap
  if (header.tokens > most_tokens) {
    throw format_error(16, "the number of tokens is " + std::to_string(header.tokens) +
                               ", expected at most " + std::to_string(most_tokens));
  }
  if (header.trained > header.tokens) {
    throw format_error(24, "the number of trained tokens is " + std::to_string(header.trained) +
                               ", expected at most " + std::to_string(header.tokens) +
                               ", the number of tokens");
  }
  const std::uint64_t expected = mask_bytes(header.tokens);
  if (file_bytes != expected) {
    throw format_error(std::min(file_bytes, expected),
                       "the file has " + std::to_string(file_bytes) + " bytes, expected " +
                           std::to_string(expected) + " for " + std::to_string(header.tokens) +
                           " tokens");
  }
  return header;
}

/// The root of a `.mask` whose header and CRCs are these bytes.
inline sha256::digest mask_root(std::span<const std::byte> header,
                                std::span<const std::byte> checksums) {
  return sha256().update(header).update(checksums).finish();
}

/// Parses a `.mask` and checks its root, but not the bits, which `verify_mask` checks.
///
/// @throws format_error  the bytes are not a complete `.mask`, or do not match the root.
inline mask_view parse_mask(std::span<const std::byte> file) {
  const mask_header header = parse_mask_header(file, file.size());
  byte_reader reader(file);
  const auto begin = reader.take("the header", mask_header_bytes);
  mask_view mask;
  mask.trained = header.trained;
  const std::uint64_t bytes = mask_bit_bytes(header.tokens);
  mask.bits = bit_span(reader.take("the bits", bytes), header.tokens);
  const auto checksums = reader.take("the checksums", 4 * sum_block_count(bytes));
  mask.blocks = unaligned_span<std::uint32_t>(checksums);
  const std::size_t root_at = reader.offset();
  mask.root = reader.take("the root", mask_root_bytes);
  const auto root = mask_root(begin, checksums);
  if (!std::ranges::equal(mask.root, std::as_bytes(std::span(root)))) {
    throw format_error(root_at, "the root does not match the header and the checksums: expected " +
                                    hex(std::as_bytes(std::span(root))) + ", found " +
                                    hex(mask.root));
  }
  return mask;
}

/// Checks the bits of a block, of which bit t is in block t / 8 / sum_block_bytes.
///
/// @pre block < mask.blocks.size()
/// @throws format_error  the block does not have its checksum; without a path, with the byte in the
///                       file.
inline void verify_mask_block(const mask_view& mask, std::size_t block) {
  const auto bytes = mask.bits.bytes();
  const std::size_t begin = block * sum_block_bytes;
  const auto part =
      bytes.subspan(begin, std::min<std::size_t>(sum_block_bytes, bytes.size() - begin));
  const std::uint32_t found = crc32c(part);
  if (found == mask.blocks[block]) return;
  throw format_error(mask_header_bytes + begin,
                     "the " + std::to_string(part.size()) + " bytes up to byte " +
                         std::to_string(mask_header_bytes + begin + part.size()) +
                         " differ from those that were written: their checksum is " + hex(found) +
                         ", expected " + hex(mask.blocks[block]));
}

/// Checks all bits of a `.mask`, in one pass.
///
/// @throws format_error  a block does not have its checksum, an unused bit is 1, or the number of
///                       trained tokens is wrong; without a path, with the byte in the file.
inline void verify_mask(const mask_view& mask) {
  const auto bytes = mask.bits.bytes();
  for (std::size_t block = 0; block < mask.blocks.size(); ++block) verify_mask_block(mask, block);
  const std::uint64_t tokens = mask.token_count();
  if (tokens % 8 != 0 && std::to_integer<unsigned>(bytes.back()) >> (tokens % 8) != 0) {
    throw format_error(
        mask_header_bytes + bytes.size() - 1,
        "a bit after the last of " + std::to_string(tokens) + " tokens is 1, expected 0");
  }
  const std::uint64_t trained = mask.bits.count(0, tokens);
  if (trained != mask.trained) {
    throw format_error(24, "the number of trained tokens is " + std::to_string(mask.trained) +
                               ", but " + std::to_string(trained) + " bits are 1");
  }
}

/// Encodes the first `mask_header_bytes` of a `.mask`.
inline std::vector<std::byte> encode_mask_header(std::uint64_t tokens, std::uint64_t trained) {
  byte_writer writer;
  writer.put(std::as_bytes(std::span(mask_magic)));
  const mask_header header{mask_version, sum_block_bytes, tokens, trained};
  fields(writer, header);
  return writer.take();
}

/// The root as 64 lower-case hexadecimal digits.
inline std::string root_hex(const mask_view& mask) {
  return hex(mask.root);
}

}  // namespace millrace::formats
