// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/sum.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;
using test::with;

// Returns the golden file, which golden/sidecars/generate.py wrote from the specification. It
// describes files of 16 and 102 bytes, which have one block each.
bytes golden_sum() {
  return test::read_bytes(test::golden("sidecars/idx_uint16_3docs.sum"));
}

/// Returns `file` with a root that matches its other bytes, so that the check of the root passes.
bytes with_root(bytes file) {
  const auto root = sha256().update(std::span(file).first(file.size() - sum_root_bytes)).finish();
  std::memcpy(file.data() + file.size() - sum_root_bytes, root.data(), root.size());
  return file;
}

/// Returns bytes of the same pattern as in generate.py.
bytes pattern(std::size_t start, std::size_t size) {
  bytes data(size);
  for (std::size_t i = start; i < start + size; ++i) {
    data[i - start] = static_cast<std::byte>(i * i + i / 251);
  }
  return data;
}

std::vector<std::uint32_t> blocks_of(std::span<const std::byte> file) {
  std::vector<std::uint32_t> blocks;
  block_checksums checksums;
  checksums.add(file, blocks);
  checksums.finish(blocks);
  return blocks;
}

TEST(ParseSum, ReadsTheGoldenFile) {
  const bytes file = golden_sum();
  const sum_view sum = parse_sum(file);
  const bytes bin = test::read_bytes(test::golden("megatron/idx_uint16_3docs.bin"));
  const bytes idx = test::read_bytes(test::golden("megatron/idx_uint16_3docs.idx"));
  EXPECT_EQ(sum.bin_bytes, bin.size());
  EXPECT_EQ(sum.idx_bytes, idx.size());
  EXPECT_THAT(sum.bin_blocks.to_vector(), testing::ElementsAre(crc32c(bin)));
  EXPECT_THAT(sum.idx_blocks.to_vector(), testing::ElementsAre(crc32c(idx)));
  EXPECT_EQ(root_hex(sum), sha256_hex(std::span(file).first(40)));
}

TEST(ParseSum, RefusesEveryTruncation) {
  test::expect_every_truncation_refused(parse_sum, golden_sum());
}

TEST(ParseSum, RefusesExtraBytes) {
  bytes file = golden_sum();
  for (int extra = 1; extra < 40; ++extra) {
    file.push_back(std::byte{0});
    expect_refused(parse_sum, with_root(file), 72, "bytes, expected 72 for a .bin of 16");
  }
}

TEST(ParseSum, RefusesABadHeader) {
  const bytes file = golden_sum();
  for (std::size_t i = 0; i < 8; ++i) {
    expect_refused(parse_sum, with(file, i, file[i] ^ std::byte{0x20}), i, "not a .sum file");
  }
  for (const std::uint32_t size : {0U, 1U << 19, (1U << 20) + 1, ~0U}) {
    expect_refused(parse_sum, with_root(with(file, 12, size)), 12,
                   "expected blocks of 1048576 bytes, found " + std::to_string(size));
  }
}

TEST(ParseSum, RefusesOtherVersions) {
  for (const std::uint32_t version : {0U, 3U, 0x01000000U, ~0U}) {
    expect_refused(parse_sum, with_root(with(golden_sum(), 8, version)), 8,
                   "expected .sum version 1 or 2, found " + std::to_string(version));
  }
}

TEST(ParseSum, ReadsTheVersionThatARepairWrites) {
  const bytes file = with_root(with(golden_sum(), 8, 2U));
  EXPECT_EQ(parse_sum(file).version, sum_version_repaired);
  EXPECT_EQ(parse_sum(golden_sum()).version, sum_version);
  const auto header = encode_sum_header(16, 102, sum_version_repaired);
  EXPECT_TRUE(std::ranges::equal(header, std::span(file).first(sum_header_bytes)));
}

// Sizes are refused even if an overflow makes them look small or correct. The overflow may occur
// when a size is rounded up, when both sizes are added, or when their sum is multiplied by four.
TEST(ParseSum, RefusesSizesThatWouldWrap) {
  for (const std::size_t at : {16UL, 24UL}) {
    for (const std::uint64_t size : {0UL, (1UL << 20) + 1, 1UL << 62, 1UL << 63, (1UL << 63) + 16,
                                     ~0UL - (1UL << 20) + 2, ~0UL}) {
      expect_refused(parse_sum, with_root(with(golden_sum(), at, size)), size == 0 ? 68 : 72,
                     "the file has 72 bytes, expected ");
    }
  }
}

// The root covers the whole file, so every altered byte is refused.
TEST(ParseSum, RefusesEveryAlteredByte) {
  const bytes file = golden_sum();
  EXPECT_EQ(test::survive_every_alteration(parse_sum, file), 255 * file.size());
  expect_refused(parse_sum, with(file, 35, std::uint8_t{0}), 40,
                 "the root does not match the checksums");
}

TEST(EncodeSum, MakesTheGoldenFile) {
  const std::size_t size = (2 << 20) + 5;
  const bytes bin = pattern(0, size);
  const bytes idx = pattern(size, 1 << 20);
  const auto bin_blocks = blocks_of(bin);
  const auto idx_blocks = blocks_of(idx);
  EXPECT_EQ(bin_blocks.size(), 3U);
  EXPECT_EQ(idx_blocks.size(), 1U);
  EXPECT_EQ(encode_sum(bin.size(), bin_blocks, idx.size(), idx_blocks),
            test::read_bytes(test::golden("sidecars/blocks.sum")));
}

TEST(EncodeSum, HasNoBlocksForEmptyFiles) {
  const bytes file = encode_sum(0, {}, 0, {});
  EXPECT_EQ(file.size(), sum_header_bytes + sum_root_bytes);
  EXPECT_TRUE(parse_sum(file).bin_blocks.empty());
  EXPECT_TRUE(parse_sum(file).idx_blocks.empty());
}

TEST(BlockChecksums, DoNotDependOnThePiecesNorOnWhoGoesOn) {
  std::mt19937_64 random(test::seed(1));
  const bytes file = pattern(7, (3 << 20) + 12345);
  const auto expected = blocks_of(file);
  ASSERT_EQ(expected.size(), 4U);
  EXPECT_EQ(expected[1], crc32c(std::span(file).subspan(1 << 20, 1 << 20)));
  EXPECT_EQ(expected[3], crc32c(std::span(file).subspan(3 << 20)));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint32_t> blocks;
    block_checksums::state saved;
    for (std::size_t at = 0; at < file.size();) {
      const std::size_t size =
          std::min<std::size_t>(random() >> (44 + random() % 20), file.size() - at);
      block_checksums checksums(saved);
      checksums.add(std::span(file).subspan(at, size), blocks);
      saved = checksums.save();
      at += size;
      EXPECT_EQ(saved.size, at);
    }
    block_checksums(saved).finish(blocks);
    EXPECT_EQ(blocks, expected);
  }
}

}  // namespace
}  // namespace millrace::formats
