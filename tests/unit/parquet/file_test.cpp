// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/file.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/paths.hpp"
#include "support/small_parquet.hpp"

namespace millrace::parquet {
namespace {

using test::parquet_of;
using test::parquet_on_disk;
using test::parquet_refusal;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParquetFile, KnowsItsRowsAndColumns) {
  const auto file = file::open(test::golden("packed_parquet/two_rows.idx.parquet"));
  EXPECT_EQ(file->row_count(), 2);
  EXPECT_EQ(file->size_bytes(), 0x215);
  EXPECT_THAT(file->column_names(), ElementsAre("input_ids", "loss_mask", "seq_start_id"));
  ASSERT_EQ(file->row_groups().size(), 1);
  EXPECT_EQ(file->row_groups()[0].first_row, 0);
  EXPECT_EQ(file->row_groups()[0].rows, 2);
}

TEST(ParquetFile, RefusesEveryTruncation) {
  const std::string whole = parquet_of({"one", "two"}).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const parquet_on_disk cut(whole.substr(0, size));
    EXPECT_THROW((void)cut.open(), format_error);
  }
}

TEST(ParquetFile, SaysWhatIsWrongWithAFile) {
  const std::string whole = parquet_of({"one"}).bytes();
  EXPECT_THAT(parquet_refusal(std::string("text")),
              HasSubstr("not a Parquet file: it has 4 bytes, and the smallest one has 12"));
  EXPECT_THAT(parquet_refusal(std::string(40, 'x')),
              HasSubstr("not a Parquet file: expected 'PAR1' in its first four bytes (at byte 0)"));
  EXPECT_THAT(parquet_refusal(whole + "x"), HasSubstr("does not end with 'PAR1'; it is cut off"));
  EXPECT_THAT(parquet_refusal("PAR1" + test::le(1000U) + "PAR1"),
              HasSubstr("the footer should have 1000 bytes, but the file has room for 0"));
  EXPECT_THAT(parquet_refusal(whole.substr(0, whole.size() - 4) + "PARE"),
              HasSubstr("the footer is encrypted"));
}

TEST(ParquetFile, RefusesAFooterThatContradictsItself) {
  auto rows = parquet_of({"one"});
  rows.footer_rows = 2;
  EXPECT_THAT(parquet_refusal(rows),
              HasSubstr("the footer promises 2 rows, but its row groups have 1"));

  auto columns = parquet_of({"one"});
  columns.chunks.push_back(columns.chunks.front());
  EXPECT_THAT(parquet_refusal(columns),
              HasSubstr("row group 0 has 2 columns, but the schema has 1"));

  auto fewer = parquet_of({"one"});
  fewer.root_children = 2;
  EXPECT_THAT(parquet_refusal(fewer), HasSubstr("fewer elements than its groups need"));

  auto more = parquet_of({"one"});
  more.schema.push_back(more.schema.front());
  EXPECT_THAT(parquet_refusal(more), HasSubstr("the schema has elements outside of its tree"));
}

// A struct in a struct in a struct: each level takes one byte.
TEST(ParquetFile, BoundsTheDepthOfItsFooter) {
  const std::string footer(100000, '\x1C');
  const std::string size = test::le(static_cast<std::uint32_t>(footer.size()));
  EXPECT_THAT(parquet_refusal("PAR1" + footer + size + "PAR1"),
              HasSubstr("nested deeper than 64 levels"));

  auto deep = parquet_of({"one"});
  const auto leaf = deep.schema.front();
  deep.schema.assign(80, {.name = "inner", .children = 1});
  deep.schema.push_back(leaf);
  EXPECT_THAT(parquet_refusal(deep), HasSubstr("the schema is nested deeper than 64 levels"));
}

}  // namespace
}  // namespace millrace::parquet
