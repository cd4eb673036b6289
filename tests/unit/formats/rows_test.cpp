// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/rows.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;

// Returns the golden file, which golden/sidecars/generate.py wrote from the specification.
bytes golden_rows() {
  return test::read_bytes(test::golden("sidecars/idx_uint16_3docs.rows-4"));
}

bytes with_crc(bytes file) {
  const std::uint32_t crc = crc32c(std::span(file).first(file.size() - 4));
  std::memcpy(file.data() + file.size() - 4, &crc, 4);
  return file;
}

/// Returns the golden file with another value at `offset` and a matching checksum.
template <class T>
bytes with(std::size_t offset, T value) {
  return with_crc(test::with(golden_rows(), offset, value));
}

TEST(ParseRows, ReadsTheGoldenFile) {
  const bytes file = golden_rows();
  const rows_view rows = parse_rows(file);
  EXPECT_EQ(rows.header.seq_len, 4);
  EXPECT_EQ(rows.header.pad_documents_to, 1);
  EXPECT_EQ(rows.header.first_document, 0);
  EXPECT_EQ(rows.header.last_document, 3);
  EXPECT_EQ(rows.header.tokens, 8);
  EXPECT_EQ(rows.header.idx_bytes, 102);
  EXPECT_EQ(rows.header.bin_bytes, 16);
  EXPECT_EQ(rows.header.has_root, 1U);
  EXPECT_EQ(rows.ends.to_vector(), std::vector<std::int64_t>{2});
  EXPECT_EQ(encode_rows(rows.header, rows.ends.to_vector()), file);
}

TEST(ParseRows, RefusesEveryTruncationAndMore) {
  bytes file = golden_rows();
  test::expect_every_truncation_refused(parse_rows, file);
  file.push_back(std::byte{});
  expect_refused(parse_rows, file, 124, "the file has 125 bytes, expected 124 for 1 blocks");
}

TEST(ParseRows, RefusesOtherHeaders) {
  expect_refused(parse_rows, with(3, 'x'), 3, "not a table of rows");
  expect_refused(parse_rows, with<std::uint32_t>(8, 2), 8, "the version is 2, expected 1");
  expect_refused(parse_rows, with<std::uint32_t>(12, 1), 12, "the block size is 1, expected 4096");
  expect_refused(parse_rows, with<std::int64_t>(16, 0), 16, "seq_len is 0");
  expect_refused(parse_rows, with<std::int64_t>(24, 0), 24, "pad_documents_to is 0");
  expect_refused(parse_rows, with<std::int64_t>(24, 3), 24, "pad_documents_to is 3");
  expect_refused(parse_rows, with<std::int64_t>(32, -1), 32, "the first document is -1");
  expect_refused(parse_rows, with<std::int64_t>(40, -1), 40,
                 "the end of the documents is -1, expected 0 or more");
  expect_refused(parse_rows, with<std::int64_t>(48, -1), 48, "the number of tokens is -1");
  expect_refused(parse_rows, with<std::uint32_t>(76, 2), 76, "the root flag is 2");
  expect_refused(parse_rows, with<std::int64_t>(112, -1), 112, "rows up to a block is -1");
  expect_refused(parse_rows, test::with<std::int64_t>(golden_rows(), 112, 3), 120,
                 "expected d36727c0, the checksum of the bytes before it, found 9a5b5ae7");
}

TEST(ParseRows, RefusesCountsThatWouldWrap) {
  for (const std::int64_t last : {4097L, 1L << 40, 1L << 62, INT64_MAX}) {
    expect_refused(parse_rows, with(40, last), 124, "the file has 124 bytes, expected ");
  }
  expect_refused(parse_rows, with<std::int64_t>(40, 0), 116, "expected 116 for 0 blocks");
}

TEST(ParseRows, RefusesRowsThatDescend) {
  rows_header header;
  header.last_document = std::int64_t{3} * 4096;
  EXPECT_FALSE(test::refusal(parse_rows, encode_rows(header, std::vector<std::int64_t>{5, 5, 6})));
  expect_refused(parse_rows, encode_rows(header, std::vector<std::int64_t>{5, 4, 6}), 120,
                 "the number of rows up to a block is 4, expected at least the 5");
}

// The checksum covers the whole file, so every altered byte is refused.
TEST(ParseRows, RefusesEveryAlteredByte) {
  const bytes file = golden_rows();
  EXPECT_EQ(test::survive_every_alteration(parse_rows, file), 255 * file.size());
}

}  // namespace
}  // namespace millrace::formats
