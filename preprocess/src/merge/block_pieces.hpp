// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

/// Checksums for P.sum when several writers each write a part of a file.
namespace millrace::preprocess {

/// The checksum of one writer's share of a block that it did not write completely.
struct block_piece {
  std::uint64_t begin = 0;  ///< offset in the file
  std::uint32_t bytes = 0;
  std::uint32_t crc32c = 0;
};
static_assert(std::is_trivially_copyable_v<block_piece>, "it goes from process to process");

/// The checksum of one block.
struct block_checksum {
  std::uint64_t block = 0;
  std::uint32_t crc32c = 0;
};

/// Checksums of one range of a file, from its bytes in order, in pieces of any size: of the blocks
/// that the range covers, and of its share of the block at either end. For one thread.
class range_checksums {
 public:
  /// @param begin  offset of the range in the file
  explicit range_checksums(std::uint64_t begin) noexcept : at_(begin) {}

  /// Adds the next bytes. Appends the blocks that they complete, and the piece that ends a block
  /// begun by another writer.
  void add(std::span<const std::byte> bytes, std::vector<block_checksum>& blocks,
           std::vector<block_piece>& pieces);

  /// Appends the range's piece of its last block, if the range does not end at a block boundary.
  void finish(std::vector<block_piece>& pieces) const;

 private:
  block_piece open_piece() const noexcept { return {at_ - open_bytes_, open_bytes_, crc_}; }

  std::uint64_t at_;
  std::uint32_t open_bytes_ = 0;  // added so far to the block at `at_`
  std::uint32_t crc_ = 0;         // of these bytes
};

/// Joins the pieces of all writers into blocks, in order.
///
/// @param pieces      in any order
/// @param file_bytes  size of the whole file
/// @throws format_error  the pieces have gaps or overlap. The error has no path.
std::vector<block_checksum> joined(std::vector<block_piece> pieces, std::uint64_t file_bytes);

}  // namespace millrace::preprocess
