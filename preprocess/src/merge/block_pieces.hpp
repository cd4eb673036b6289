// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

/// The checksums of P.sum, where a file is written by several, each somewhere in it.
namespace millrace::preprocess {

/// The checksum of what one writer wrote of a block, where that is not the whole block.
struct block_piece {
  std::uint64_t begin = 0;  ///< in the file
  std::uint32_t bytes = 0;
  std::uint32_t crc32c = 0;
};
static_assert(std::is_trivially_copyable_v<block_piece>, "it goes from process to process");

/// The checksum of one block.
struct block_checksum {
  std::uint64_t block = 0;
  std::uint32_t crc32c = 0;
};

/// Checksums of one range of a file, out of its bytes in pieces of any size, front to back: those
/// of the blocks that it covers, and of its share of the one at either end. For one thread.
class range_checksums {
 public:
  /// @param begin  of the range, in the file
  explicit range_checksums(std::uint64_t begin) noexcept : at_(begin) {}

  /// The next bytes. Appends the blocks that they complete, and what ends a block begun by another.
  void add(std::span<const std::byte> bytes, std::vector<block_checksum>& blocks,
           std::vector<block_piece>& pieces);

  /// Appends what the range has of its last block, if it does not end with it.
  void finish(std::vector<block_piece>& pieces) const;

 private:
  block_piece open_piece() const noexcept { return {at_ - open_bytes_, open_bytes_, crc_}; }

  std::uint64_t at_;
  std::uint32_t open_bytes_ = 0;  // of the block at `at_`, that came here
  std::uint32_t crc_ = 0;         // of these
};

/// The blocks that the pieces of all writers together are, in order.
///
/// @param pieces      in any order
/// @param file_bytes  of the whole file
/// @throws format_error  they leave something out, or overlap. It has no path.
std::vector<block_checksum> joined(std::vector<block_piece> pieces, std::uint64_t file_bytes);

}  // namespace millrace::preprocess
