// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

/// Block checksums for P.sum if several writers each write a part of a file. A block has 1 MiB.
namespace millrace::preprocess {

/// The part of a block that one writer wrote, with its checksum. Other writers wrote the rest of
/// the block.
struct block_piece {
  std::uint64_t begin = 0;  ///< offset of the piece in the file
  std::uint32_t bytes = 0;
  std::uint32_t crc32c = 0;
};
static_assert(std::is_trivially_copyable_v<block_piece>, "it goes from process to process");

/// The checksum of one block.
struct block_checksum {
  std::uint64_t block = 0;
  std::uint32_t crc32c = 0;
};

/// Computes the checksums of one range of a file. The bytes of the range are added in order, any
/// number at a time. Yields the checksum of each block that the range covers completely. If the
/// range begins or ends inside a block, yields a block_piece for that block. Not thread-safe.
class range_checksums {
 public:
  /// @param begin  offset of the range in the file
  explicit range_checksums(std::uint64_t begin) noexcept : at_(begin) {}

  /// Adds the next bytes. For each block that these bytes complete, appends the checksum of the
  /// block to `blocks`. But if the range began inside that block, appends the range's piece of the
  /// block to `pieces` instead.
  void add(std::span<const std::byte> bytes, std::vector<block_checksum>& blocks,
           std::vector<block_piece>& pieces);

  /// Call this after the last add(). If the range ends inside a block, appends the range's piece of
  /// that block.
  void finish(std::vector<block_piece>& pieces) const;

 private:
  block_piece open_piece() const noexcept { return {at_ - open_bytes_, open_bytes_, crc_}; }

  std::uint64_t at_;
  std::uint32_t open_bytes_ = 0;  // bytes added so far to the current block
  std::uint32_t crc_ = 0;         // checksum of these bytes
};

/// Joins the pieces of all writers to whole blocks, and returns the checksums of these blocks in
/// file order.
///
/// @param pieces      in any order
/// @param file_bytes  size of the whole file
/// @throws format_error  the pieces have gaps or overlap. The error has no path.
std::vector<block_checksum> joined(std::vector<block_piece> pieces, std::uint64_t file_bytes);

}  // namespace millrace::preprocess
