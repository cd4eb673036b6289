// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/list_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <millrace/formats/detail/packed_parquet.hpp>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "support/small_parquet.hpp"

namespace millrace::parquet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<std::int32_t>> lists_of(const std::shared_ptr<const file>& from,
                                                const std::string& column) {
  const std::vector<column_path> paths = {{column}};
  const selection one(from, paths);
  list_reader reader(one, 0);
  std::vector<std::vector<std::int32_t>> lists;
  for (std::vector<std::int32_t> list; reader.next(list);) lists.push_back(list);
  return lists;
}

TEST(ParquetLists, AreThoseOfOurOwnWriter) {
  const auto packed = file::open(test::golden("packed_parquet/two_rows.idx.parquet"));
  EXPECT_THAT(lists_of(packed, "input_ids"),
              ElementsAre(ElementsAre(5, 6, 7, 2), ElementsAre(300, 2, 8, 9, 2)));
  EXPECT_THAT(lists_of(packed, "loss_mask"),
              ElementsAre(ElementsAre(0, 1, 1, 0), ElementsAre(1, 0, 0, 1, 0)));
  EXPECT_THAT(lists_of(packed, "seq_start_id"), ElementsAre(ElementsAre(0), ElementsAre(0, 2)));
}

// Entries are decoded 1,024 at a time, so these lists begin and end everywhere in a batch.
TEST(ParquetLists, MayBeLongerThanABatch) {
  formats::packed_parquet_encoder encoder({.page_bytes = 5000});
  std::vector<std::byte> bytes;
  std::vector<std::vector<std::int32_t>> wanted;
  std::int32_t next = 0;
  for (const std::size_t size : {1U, 1023U, 1024U, 1U, 3000U, 1U, 1U, 1023U, 2048U, 5U}) {
    std::vector<std::int32_t>& ids = wanted.emplace_back();
    while (ids.size() < size) ids.push_back(next++);
    const std::vector<std::uint8_t> mask(size, 1);
    encoder.add_row(ids, mask, std::vector<std::int32_t>{0}, bytes);
  }
  encoder.finish(bytes);
  const test::parquet_on_disk disk(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  EXPECT_TRUE(lists_of(disk.open(), "input_ids") == wanted);
}

std::string list_refusal(const test::small_parquet& made) {
  const test::parquet_on_disk disk(made);
  try {
    (void)lists_of(disk.open(), "ids");
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}

/// Rows of an optional list of optional integers: levels of definition 0 to 3.
test::small_parquet optional_lists(const std::vector<int>& definition, int type,
                                   const std::string& values) {
  test::small_parquet file;
  file.schema = {{.name = "ids", .repetition = 1, .children = 1, .converted = 3},
                 {.name = "list", .repetition = 2, .children = 1},
                 {.name = "element", .repetition = 1, .type = type}};
  const int rows = static_cast<int>(definition.size());
  const std::string body =
      test::levels(std::vector<int>(definition.size(), 0)) + test::levels(definition) + values;
  file.chunks = {{.type = type, .pages = {{.body = body, .values = rows}}, .values = rows}};
  file.rows = rows;
  return file;
}

TEST(ParquetLists, NameTheRowOfWhatIsNoList) {
  EXPECT_EQ(list_refusal(optional_lists({3, 1, 3}, 1, test::le(1) + test::le(2))), "accepted");
  EXPECT_THAT(list_refusal(optional_lists({3, 0}, 1, test::le(1))),
              HasSubstr("column 'ids': row 1 of row group 0 is null"));
  EXPECT_THAT(list_refusal(optional_lists({3, 2}, 1, test::le(1))),
              HasSubstr("row 1 of row group 0 has a null in its list"));
  EXPECT_THAT(list_refusal(optional_lists({3}, 2, test::le(std::int64_t{1} << 31))),
              HasSubstr("row 0 of row group 0 has an integer that does not fit in 32 bits"));
  // The second element of a list; levels of repetition 0, 1, 1.
  auto later = optional_lists({3, 3, 3}, 2, "");
  later.chunks[0].pages[0].body =
      test::levels({0, 1, 1}) + test::levels({3, 3, 3}) + test::le(std::int64_t{1}) +
      test::le((std::int64_t{-1} << 31) - 1) + test::le(std::int64_t{-1} << 31);
  later.rows = 1;
  EXPECT_THAT(list_refusal(later), HasSubstr("row 0 of row group 0 has an integer that does not"));
  auto null_later = optional_lists({3, 3, 2}, 1, "");
  null_later.chunks[0].pages[0].body =
      test::levels({0, 1, 1}) + test::levels({3, 3, 2}) + test::le(1) + test::le(2);
  null_later.rows = 1;
  EXPECT_THAT(list_refusal(null_later), HasSubstr("row 0 of row group 0 has a null in its list"));
  auto few = optional_lists({3}, 1, test::le(1));
  few.rows = 2;
  EXPECT_THAT(list_refusal(few), HasSubstr("the pages end after row 1"));
  auto many = optional_lists({3, 3}, 1, test::le(1) + test::le(2));
  many.rows = 1;
  EXPECT_THAT(list_refusal(many), HasSubstr("more than the 1 rows"));
}

TEST(ParquetLists, AreOfIntegers) {
  const test::parquet_on_disk disk(test::parquet_of({"one"}));
  EXPECT_THAT(test::config_refusal([&] { return lists_of(disk.open(), "text"); }),
              HasSubstr("column 'text' is not a list of integers"));
}

}  // namespace
}  // namespace millrace::parquet
