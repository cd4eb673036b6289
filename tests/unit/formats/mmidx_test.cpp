// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/mmidx.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"
#include "unit/formats/golden_idx.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::document_index_at;
using test::expect_refused;
using test::golden_idx;
using test::lengths_at;
using test::pointers_at;
using test::with;

TEST(ParseMmidx, ReadsMegatronsFile) {
  const bytes file = golden_idx();
  const mmidx_view idx = parse_mmidx(file);
  EXPECT_EQ(idx.type, dtype::uint16);
  EXPECT_EQ(idx.sequence_count(), 3);
  EXPECT_EQ(idx.document_count(), 3);
  EXPECT_THAT(idx.lengths.to_vector(), testing::ElementsAre(3, 2, 3));
  EXPECT_THAT(idx.pointers.to_vector(), testing::ElementsAre(0, 6, 10));
  EXPECT_THAT(idx.document_index.to_vector(), testing::ElementsAre(0, 1, 1, 3));
  EXPECT_TRUE(idx.modes.empty());
  EXPECT_EQ(idx.bin_size_bytes, 16);
  EXPECT_EQ(idx.pointers_offset(), pointers_at);
  EXPECT_EQ(idx.document_index_offset(), document_index_at);
}

TEST(ParseMmidx, ReadsModes) {
  const bytes file = test::read_bytes(test::golden("megatron/idx_mm.idx"));
  EXPECT_THAT(parse_mmidx(file).modes.to_vector(), testing::ElementsAre(0, 1, 1));
}

TEST(ParseMmidx, ReadsADatasetWithoutSequences) {
  const bytes file = test::read_bytes(test::golden("megatron/idx_empty.idx"));
  const mmidx_view idx = parse_mmidx(file);
  EXPECT_EQ(idx.sequence_count(), 0);
  EXPECT_EQ(idx.document_count(), 0);
  EXPECT_EQ(idx.bin_size_bytes, 0);
}

TEST(ParseMmidx, RefusesEveryTruncation) {
  test::expect_every_truncation_refused(parse_mmidx, golden_idx());
}

// Every truncation of a multimodal index is refused, except one that removes exactly the modes. The
// rest is then a valid text index, in which nothing shows that modes are missing.
TEST(ParseMmidx, RefusesEveryTruncationOfModesButAll) {
  const bytes file = test::read_bytes(test::golden("megatron/idx_mm.idx"));
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(!test::refusal(parse_mmidx, std::span(file).first(size)), size == file.size() - 3);
  }
}

TEST(ParseMmidx, RefusesExtraBytes) {
  bytes file = golden_idx();
  for (int extra = 1; extra < 20; ++extra) {
    file.push_back(std::byte{0});
    if (extra == 3) continue;  // one byte per sequence, so these bytes are valid modes
    expect_refused(parse_mmidx, file, 102, "bytes follow the document index, expected 0, or 3");
  }
  bytes empty = test::read_bytes(test::golden("megatron/idx_empty.idx"));
  empty.push_back(std::byte{0});
  expect_refused(parse_mmidx, empty, 42, "1 bytes follow the document index");
}

TEST(ParseMmidx, RefusesABadHeader) {
  const bytes file = golden_idx();
  for (std::size_t i = 0; i < 9; ++i) {
    expect_refused(parse_mmidx, with(file, i, file[i] ^ std::byte{0x20}), i, "not an .idx file");
  }
  for (const int code : {0, 9, 255}) {
    expect_refused(parse_mmidx, with(file, 17, static_cast<std::uint8_t>(code)), 17,
                   "expected a dtype code from 1 to 8, found " + std::to_string(code));
  }
}

TEST(ParseMmidx, RefusesOtherVersions) {
  for (const std::uint64_t version : {0UL, 2UL, 0x0100000000000000UL, ~0UL}) {
    expect_refused(parse_mmidx, with(golden_idx(), 9, version), 9,
                   "expected .idx version 1, found " + std::to_string(version));
  }
}

// Counts of sequences (S) and documents (D) are refused even if a size wraps. The sizes are (12 * S
// + 8 * D) and (34 + 12 * S). Some wrapped sizes are small, and some equal the file size.
TEST(ParseMmidx, RefusesCountsThatWouldWrap) {
  const bytes file = golden_idx();
  for (const std::uint64_t count :
       {4UL, 1UL << 60, (1UL << 62) + 3, 0x5555555555555558UL, 1UL << 63, ~0UL - 2, ~0UL}) {
    expect_refused(parse_mmidx, with(file, 18, count), count == 4 ? 26 : 18, "the header counts");
  }
  for (const std::uint64_t count : {5UL, (1UL << 61) + 4, (1UL << 63) + 4, ~0UL}) {
    expect_refused(parse_mmidx, with(file, 26, count), 26, "the header counts");
  }
  expect_refused(parse_mmidx, with(file, 26, std::uint64_t{0}), 26,
                 "expected at least its leading");
}

TEST(ParseMmidx, ChecksFirstAndLastEntries) {
  const bytes file = golden_idx();
  expect_refused(parse_mmidx, with(file, document_index_at, std::int64_t{1}), document_index_at,
                 "starts with 1, expected 0");
  for (const std::int64_t last : {std::int64_t{2}, std::int64_t{4}, std::int64_t{-1}}) {
    expect_refused(parse_mmidx, with(file, document_index_at + 24, last), document_index_at + 24,
                   "ends with " + std::to_string(last) + ", expected 3");
  }
  expect_refused(parse_mmidx, with(file, pointers_at, std::int64_t{2}), pointers_at,
                 "starts at byte 2 of the .bin, expected 0");
  expect_refused(parse_mmidx, with(file, pointers_at + 16, std::int64_t{-1}), pointers_at + 16,
                 "the last pointer is -1");
  expect_refused(parse_mmidx, with(file, lengths_at + 8, std::int32_t{-1}), lengths_at + 8,
                 "the last length is -1");
}

TEST(ParseMmidx, SumsTheLargestBinWithoutWrapping) {
  bytes file = with(golden_idx(), pointers_at + 16, std::numeric_limits<std::int64_t>::max());
  file = with(file, lengths_at + 8, std::numeric_limits<std::int32_t>::max());
  file = with(file, 17, std::uint8_t{5});  // int64
  EXPECT_EQ(parse_mmidx(file).bin_size_bytes, 0x7FFFFFFFFFFFFFFFUL + 8UL * 0x7FFFFFFFUL);
}

TEST(ParseMmidx, SurvivesEveryAlteredByte) {
  EXPECT_GT(test::survive_every_alteration(parse_mmidx, golden_idx()), 0U);
  const bytes mm = test::read_bytes(test::golden("megatron/idx_mm.idx"));
  EXPECT_GT(test::survive_every_alteration(parse_mmidx, mm), 0U);
}

TEST(EncodeMmidx, HeaderCountsDocumentsPlusOne) {
  const bytes header = encode_mmidx_header(dtype::uint16, 3, 3);
  const bytes file = golden_idx();
  EXPECT_TRUE(std::ranges::equal(header, std::span(file).first(mmidx_header_bytes)));
}

TEST(EncodeMmidx, ComputesPointersIn64Bits) {
  const std::vector<std::int32_t> lengths = {0x7FFFFFFF, 0x7FFFFFFF, 1};
  const std::vector<std::int64_t> document_index = {0, 3};
  const bytes file = encode_mmidx(dtype::int64, lengths, document_index);
  EXPECT_THAT(parse_mmidx(file).pointers.to_vector(),
              testing::ElementsAre(0, 8L * 0x7FFFFFFF, 16L * 0x7FFFFFFF));
}

}  // namespace
}  // namespace millrace::formats
