// SPDX-License-Identifier: Apache-2.0
#include "merge/block_pieces.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/sum.hpp>

namespace millrace::preprocess {

using formats::sum_block_bytes;

void range_checksums::add(std::span<const std::byte> bytes, std::vector<block_checksum>& blocks,
                          std::vector<block_piece>& pieces) {
  while (!bytes.empty()) {
    const std::size_t room = sum_block_bytes - at_ % sum_block_bytes;
    const auto part = bytes.first(std::min(bytes.size(), room));
    crc_ = formats::crc32c(part, crc_);
    at_ += part.size();
    open_bytes_ += static_cast<std::uint32_t>(part.size());
    if (part.size() == room) {
      if (open_bytes_ == sum_block_bytes) {
        blocks.push_back({at_ / sum_block_bytes - 1, crc_});
      } else {
        pieces.push_back(open_piece());
      }
      open_bytes_ = 0;
      crc_ = 0;
    }
    bytes = bytes.subspan(part.size());
  }
}

void range_checksums::finish(std::vector<block_piece>& pieces) const {
  if (open_bytes_ != 0) pieces.push_back(open_piece());
}

std::vector<block_checksum> joined(std::vector<block_piece> pieces, std::uint64_t file_bytes) {
  std::ranges::sort(pieces, {}, &block_piece::begin);
  std::vector<block_checksum> blocks;
  std::uint64_t expected = 0;  // where the next piece must begin, unless `may_skip`
  for (const block_piece& piece : pieces) {
    const std::uint64_t block = piece.begin / sum_block_bytes;
    const bool begins = piece.begin % sum_block_bytes == 0;
    // After a complete block, the next blocks may have no pieces: a block that a single writer
    // wrote has none.
    const bool may_skip = begins && expected % sum_block_bytes == 0;
    if (may_skip ? piece.begin < expected : piece.begin != expected) {
      throw format_error(
          piece.begin,
          fmt::format("the next checksums do not continue at byte {}, where the previous ones end",
                      expected));
    }
    if (begins) {
      blocks.push_back({block, piece.crc32c});
    } else {
      std::uint32_t& crc = blocks.back().crc32c;
      crc = formats::crc32c_combine(crc, piece.crc32c, piece.bytes);
    }
    expected = piece.begin + piece.bytes;
  }
  if (expected % sum_block_bytes != 0 && expected != file_bytes) {
    throw format_error(expected, "nothing was written after this byte");
  }
  return blocks;
}

}  // namespace millrace::preprocess
