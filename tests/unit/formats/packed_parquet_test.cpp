// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/packed_parquet.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::formats {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using file_bytes = std::vector<std::byte>;

struct packed_row {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> loss_mask;
  std::vector<std::int32_t> starts;
};

file_bytes encode_packed(const std::vector<packed_row>& rows, packed_parquet_options options = {}) {
  packed_parquet_encoder encoder(std::move(options));
  file_bytes file;
  for (const packed_row& row : rows) encoder.add_row(row.ids, row.loss_mask, row.starts, file);
  encoder.finish(file);
  return file;
}

std::vector<packed_row> random_rows(std::uint64_t seed, std::size_t count) {
  std::mt19937_64 random(seed);
  std::vector<packed_row> rows(count);
  for (packed_row& row : rows) {
    row.ids.resize(1 + random() % 200);
    for (auto& id : row.ids) id = static_cast<std::int32_t>(random() % 100000);
    for (std::size_t i = 0; i < row.ids.size(); ++i) {
      row.loss_mask.push_back(static_cast<std::uint8_t>(random() % 2));
    }
    row.starts.resize(1 + random() % 9);
    for (auto& start : row.starts) start = static_cast<std::int32_t>(random() % row.ids.size());
    row.starts[0] = 0;
    std::ranges::sort(row.starts);
  }
  return rows;
}

file_bytes golden_parquet(const std::string& name) {
  return test::read_bytes(test::golden("packed_parquet/" + name + ".idx.parquet"));
}

// golden/packed_parquet/generate.py wrote these files from the specification.
TEST(PackedParquet, WritesTheGoldenFiles) {
  EXPECT_EQ(encode_packed(
                {{{5, 6, 7, 2}, {0, 1, 1, 0}, {0}}, {{300, 2, 8, 9, 2}, {1, 0, 0, 1, 0}, {0, 2}}}),
            golden_parquet("two_rows"));
  EXPECT_EQ(encode_packed({}), golden_parquet("empty"));

  std::vector<packed_row> rows = {{{1}, {1}, {0}}, {{2147483647, 0, 70000}, {1, 0, 1}, {0, 0, 2}}};
  packed_row& longest = rows.emplace_back();
  for (std::int32_t i = 0; i < 100; ++i) {
    longest.ids.push_back(i);
    longest.loss_mask.push_back(static_cast<std::uint8_t>(i % 3 % 2));
    if (i % 7 == 0) longest.starts.push_back(i);
  }
  rows.push_back({{4, 4}, {0, 0}, {0}});
  rows.push_back({{9, 8, 7, 6, 5, 4, 3, 2}, std::vector<std::uint8_t>(8, 1), {0, 7}});
  EXPECT_EQ(encode_packed(rows, {.row_group_rows = 2, .page_bytes = 40}), golden_parquet("groups"));
}

TEST(PackedParquet, GivesTheSameBytesInPieces) {
  const auto rows = random_rows(test::seed(1), 300);
  const packed_parquet_options options{.row_group_rows = 37, .page_bytes = 1000};
  packed_parquet_encoder encoder(options);
  file_bytes file;
  file_bytes piece;
  for (const packed_row& row : rows) {
    encoder.add_row(row.ids, row.loss_mask, row.starts, piece);
    file.insert(file.end(), piece.begin(), piece.end());
    piece.clear();
  }
  EXPECT_EQ(encoder.row_count(), 300);
  encoder.finish(file);
  EXPECT_EQ(file, encode_packed(rows, options));
}

TEST(PackedParquet, RefusesBadRowsAndContinues) {
  using ids = std::vector<std::int32_t>;
  using mask = std::vector<std::uint8_t>;
  const std::vector<std::pair<packed_row, const char*>> bad = {
      {{{}, {}, {0}}, "row 1: there are no ids"},
      {{{}, {}, {}}, "row 1: there are no ids"},
      {{{1, 2}, {1}, {0}}, "the loss mask has 1 entries, expected 2"},
      {{{1, 2}, {1, 1, 1}, {0}}, "the loss mask has 3 entries, expected 2"},
      {{{1, 2}, {1, 2}, {0}}, "entry 1 of the loss mask is 2, expected 0 or 1"},
      {{{1, 2}, {255, 0}, {0}}, "entry 0 of the loss mask is 255"},
      {{{1, 2}, {0, 0}, {}}, "the first sequence starts at no position, expected 0"},
      {{{1, 2}, {0, 0}, {1}}, "the first sequence starts at 1, expected 0"},
      {{{1, 2}, {0, 0}, {-1}}, "the first sequence starts at -1, expected 0"},
      {{{1, 2, 3}, {0, 0, 0}, {0, 2, 1}}, "a sequence starts at 1, after one that starts at 2"},
      {{{1, 2}, {0, 0}, {0, -1}}, "a sequence starts at -1, after one that starts at 0"},
      {{{1, 2}, {0, 0}, {0, 2}}, "a sequence starts at 2, expected at most 1"}};
  packed_parquet_encoder encoder;
  file_bytes file;
  const packed_row good = {ids{1, 2, 3}, mask{0, 1, 0}, ids{0, 2}};
  encoder.add_row(good.ids, good.loss_mask, good.starts, file);
  for (const auto& each : bad) {  // clang 14 cannot capture structured bindings
    const packed_row& row = each.first;
    EXPECT_THAT([&] { encoder.add_row(row.ids, row.loss_mask, row.starts, file); },
                ThrowsMessage<error>(HasSubstr(each.second)));
  }
  EXPECT_EQ(encoder.row_count(), 1);
  encoder.add_row(good.ids, good.loss_mask, good.starts, file);
  encoder.finish(file);
  EXPECT_EQ(file, encode_packed({good, good}));
}

// The check comes before any id is read, so the lists need no memory.
TEST(PackedParquet, RefusesListsThatAreTooLong) {
  const std::int32_t zero = 0;
  const std::uint8_t mask = 0;
  const std::span<const std::int32_t> one(&zero, 1);
  const std::span<const std::int32_t> long_list(&zero, packed_parquet_most_elements + 1);
  const std::span<const std::uint8_t> long_mask(&mask, packed_parquet_most_elements + 1);
  packed_parquet_encoder encoder;
  file_bytes file;
  EXPECT_THAT([&] { encoder.add_row(long_list, long_mask, one, file); },
              ThrowsMessage<error>(HasSubstr("268435457 ids and 1 starts")));
  EXPECT_THAT([&] { encoder.add_row(one, std::span(&mask, 1), long_list, file); },
              ThrowsMessage<error>(HasSubstr("1 ids and 268435457 starts")));
}

TEST(PackedParquet, RefusesOptionsOutOfRange) {
  EXPECT_THROW(packed_parquet_encoder({.row_group_rows = 0}), config_error);
  EXPECT_THROW(packed_parquet_encoder({.row_group_rows = -1}), config_error);
  EXPECT_THROW(packed_parquet_encoder({.row_group_elements = 0}), config_error);
  EXPECT_THROW(packed_parquet_encoder({.page_bytes = 0}), config_error);
  EXPECT_THROW(packed_parquet_encoder({.page_bytes = packed_parquet_most_page_bytes + 1}),
               config_error);
  EXPECT_THROW(packed_parquet_encoder({.most_row_groups = 0}), config_error);
  EXPECT_THROW(packed_parquet_encoder({.most_row_groups = 1'000'001}), config_error);
  EXPECT_NO_THROW(packed_parquet_encoder({.page_bytes = packed_parquet_most_page_bytes}));
}

TEST(PackedParquet, EndsRowGroupsBeforeTheyHaveTooManyElements) {
  const packed_row ids = {{1, 2, 3}, {0, 0, 0}, {0}};
  const packed_row starts = {{1}, {0}, {0, 0, 0}};
  for (const packed_row& row : {ids, starts}) {
    const std::vector<packed_row> rows(7, row);
    const auto pairs = encode_packed(rows, {.row_group_rows = 2});
    EXPECT_EQ(encode_packed(rows, {.row_group_elements = 6}), pairs);
    EXPECT_EQ(encode_packed(rows, {.row_group_elements = 8}), pairs);
    EXPECT_NE(encode_packed(rows, {.row_group_elements = 9}), pairs);
    // A row that is too large has a row group of its own.
    const auto alone = encode_packed(rows, {.row_group_rows = 1});
    EXPECT_EQ(encode_packed(rows, {.row_group_elements = 2}), alone);
    EXPECT_EQ(encode_packed(rows, {.row_group_elements = 5}), alone);
  }
}

TEST(PackedParquet, RefusesTooManyRowGroups) {
  const packed_row row = {{1}, {1}, {0}};
  packed_parquet_encoder encoder({.row_group_rows = 2, .most_row_groups = 3});
  file_bytes file;
  for (int i = 0; i < 6; ++i) encoder.add_row(row.ids, row.loss_mask, row.starts, file);
  EXPECT_THAT([&] { encoder.add_row(row.ids, row.loss_mask, row.starts, file); },
              ThrowsMessage<error>(HasSubstr("row 6: the file has 3 row groups")));
  encoder.finish(file);
  EXPECT_EQ(file, encode_packed(std::vector(6, row), {.row_group_rows = 2}));
}

// If compression changes nothing, the files differ in the codec of each column chunk alone.
TEST(PackedParquet, CompressesEachPage) {
  const auto rows = random_rows(2, 10);
  std::vector<std::size_t> sizes;
  const auto copy = [&](std::span<const std::byte> page, file_bytes& out) {
    sizes.push_back(page.size());
    out.insert(out.end(), page.begin(), page.end());
  };
  const packed_parquet_options options{.row_group_rows = 5};
  auto compressed_options = options;
  compressed_options.zstd = copy;
  const auto plain = encode_packed(rows, options);
  const auto compressed = encode_packed(rows, compressed_options);
  // Two row groups, each with three pages and a dictionary.
  EXPECT_EQ(sizes.size(), 8U);
  EXPECT_EQ(std::ranges::count(sizes, 8U), 2);
  ASSERT_EQ(compressed.size(), plain.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == compressed[i]) continue;
    EXPECT_EQ(plain[i], std::byte{0}) << i;
    EXPECT_EQ(compressed[i], std::byte{2 * parquet::codec_zstd}) << i;
    ++different;
  }
  EXPECT_EQ(different, 6U);
}

TEST(PackedParquet, IdsLeaveMemoryBeforeTheRowGroupEnds) {
  const packed_row row = {
      std::vector<std::int32_t>(4096, 7), std::vector<std::uint8_t>(4096, 1), {0}};
  packed_parquet_encoder encoder({.row_group_rows = 1'000'000});
  file_bytes piece;
  std::size_t written = 0;
  constexpr std::size_t count = 1000;
  for (std::size_t i = 0; i < count; ++i) {
    piece.clear();
    encoder.add_row(row.ids, row.loss_mask, row.starts, piece);
    written += piece.size();
    EXPECT_LT(piece.size(), (1U << 20) + 4 * 4096 + 1000);
  }
  EXPECT_GT(written, (count * 4 * 4096) / (1U << 20) * (1U << 20));
  piece.clear();
  encoder.finish(piece);
  EXPECT_LT(piece.size(), (1U << 20) + count * 4096 / 8 + 10000);
}

}  // namespace
}  // namespace millrace::formats
