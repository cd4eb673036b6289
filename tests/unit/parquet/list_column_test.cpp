// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/list_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "support/small_parquet.hpp"

namespace millrace::parquet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParquetListColumn, ContinuesInTheNextRowGroup) {
  // Five rows in row groups of two.
  const auto packed = file::open(test::golden("packed_parquet/groups.idx.parquet"));
  list_column starts(packed, "seq_start_id");
  std::vector<std::pair<std::size_t, std::int32_t>> found;  // row group and last start
  std::vector<std::int32_t> list;
  while (starts.next(list)) found.emplace_back(starts.row_group(), list.back());
  EXPECT_THAT(found, ElementsAre(std::pair(0, 0), std::pair(0, 2), std::pair(1, 98),
                                 std::pair(1, 0), std::pair(2, 7)));
  EXPECT_FALSE(starts.next(list));
  EXPECT_EQ(starts.columns().value_count(0), 4);
  EXPECT_EQ(list_column(packed, "input_ids").columns().value_count(1), 102);
}

TEST(ParquetListColumn, OfNoRowIsEmpty) {
  list_column ids(file::open(test::golden("packed_parquet/empty.idx.parquet")), "input_ids");
  std::vector<std::int32_t> list;
  EXPECT_FALSE(ids.next(list));
}

TEST(ParquetListColumn, IsRefusedBeforeItIsRead) {
  const auto refusal_of = [](const std::string& golden, const std::string& name) {
    const auto from = file::open(test::golden("packed_parquet/errors/" + golden + ".idx.parquet"));
    return test::config_refusal([&] { return list_column(from, name); });
  };
  EXPECT_THAT(refusal_of("no_loss_mask", "loss_mask"), HasSubstr("there is no column 'loss_mask'"));
  EXPECT_THAT(refusal_of("ids_are_no_lists", "input_ids"),
              HasSubstr("column 'input_ids' is not a list of integers"));
}

}  // namespace
}  // namespace millrace::parquet
