// SPDX-License-Identifier: Apache-2.0
#include "merge/block_pieces.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>

#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t block_bytes = formats::sum_block_bytes;

std::vector<std::uint32_t> checksums_of_whole(std::span<const std::byte> file) {
  std::vector<std::uint32_t> checksums;
  formats::block_checksums blocks;
  blocks.add(file, checksums);
  blocks.finish(checksums);
  return checksums;
}

// However a file is cut, the joined checksums equal those of the whole file. The test cuts the file
// into ranges, one per writer. Each writer adds its range in steps of random sizes. The pieces of
// all writers are joined in random order.
TEST(BlockPieces, AnyCutsGiveTheChecksumsOfTheWhole) {
  std::mt19937_64 random(test::seed(91));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, block_bytes - 1, block_bytes,
                                 block_bytes + 1, 3 * block_bytes + 12345}) {
    std::vector<std::byte> file(size);
    for (std::byte& byte : file) byte = static_cast<std::byte>(random());
    for (int round = 0; round < 20; ++round) {
      SCOPED_TRACE(testing::Message() << size << " bytes, round " << round);
      std::vector<std::size_t> cuts = {0, size, block_bytes * (random() % 4)};
      for (std::size_t n = random() % 12; n > 0; --n) cuts.push_back(random() % (size + 1));
      for (std::size_t& cut : cuts) cut = std::min(cut, size);
      std::ranges::sort(cuts);
      std::map<std::uint64_t, std::uint32_t> found;
      std::vector<block_piece> pieces;
      std::vector<block_checksum> blocks;
      for (std::size_t i = 1; i < cuts.size(); ++i) {
        range_checksums range(cuts[i - 1]);
        for (std::size_t at = cuts[i - 1]; at < cuts[i];) {
          const std::size_t n = std::min<std::size_t>(cuts[i] - at, 1 + random() % (1 << 20));
          range.add(std::span(file).subspan(at, n), blocks, pieces);
          at += n;
        }
        range.finish(pieces);
      }
      std::ranges::shuffle(pieces, random);
      for (const auto& [block, crc] : joined(pieces, size)) blocks.push_back({block, crc});
      for (const auto& [block, crc] : blocks) {
        EXPECT_TRUE(found.emplace(block, crc).second) << "block " << block << " came twice";
      }
      const auto wanted = checksums_of_whole(file);
      ASSERT_EQ(found.size(), wanted.size());
      for (std::size_t block = 0; block < wanted.size(); ++block) {
        EXPECT_EQ(found.at(block), wanted[block]);
      }
    }
  }
}

TEST(BlockPieces, AGapOrAnOverlapIsNamed) {
  const auto refused = [](std::vector<block_piece> pieces, std::uint64_t size, const char* part) {
    EXPECT_THAT([&] { (void)joined(pieces, size); },
                testing::ThrowsMessage<format_error>(testing::HasSubstr(part)));
  };
  refused({{0, 10, 1}, {11, 9, 2}}, 20, "do not continue at byte 10");
  refused({{0, 10, 1}, {9, 11, 2}}, 20, "do not continue at byte 10");
  refused({{5, 15, 1}}, 20, "do not continue at byte 0");
  refused({{0, 10, 1}}, 20, "nothing was written after this byte");
  refused({{0, 10, 1}, {block_bytes, 10, 1}}, block_bytes + 10, "do not continue at byte 10");
}

}  // namespace
}  // namespace millrace::preprocess
