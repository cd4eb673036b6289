// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/detail/packed_parquet_writer.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "support/paths.hpp"

namespace millrace::io {
namespace {

TEST(PackedParquetWriter, WritesAFileThatAppearsComplete) {
  const test::temp_folder folder;
  const auto path = folder / "packed.idx.parquet";
  packed_parquet_writer writer{atomic_file(path)};
  const auto add = [&](std::vector<std::int32_t> ids, std::vector<std::uint8_t> loss_mask,
                       std::vector<std::int32_t> starts) {
    writer.add_row(ids, loss_mask, starts);
  };
  add({5, 6, 7, 2}, {0, 1, 1, 0}, {0});
  EXPECT_THROW(add({5, 6}, {0}, {0}), error);
  add({300, 2, 8, 9, 2}, {1, 0, 0, 1, 0}, {0, 2});
  EXPECT_EQ(writer.row_count(), 2);
  writer.finish();
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.file().commit();
  EXPECT_EQ(test::read_bytes(path),
            test::read_bytes(test::golden("packed_parquet/two_rows.idx.parquet")));
}

TEST(PackedParquetWriter, LeavesNothingWithoutACommit) {
  const test::temp_folder folder;
  {
    packed_parquet_writer writer(atomic_file(folder / "packed.idx.parquet"));
    writer.finish();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace millrace::io
