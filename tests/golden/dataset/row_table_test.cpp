// SPDX-License-Identifier: Apache-2.0
//
// Compares tables of rows byte by byte with the tables that golden/sidecars/generate.py wrote. That
// program follows formats/spec/rows.md.
#include <millrace/dataset/detail/packing/row_table.hpp>

#include <filesystem>

#include <gtest/gtest.h>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

TEST(GoldenRowTable, IsMadeOfMegatronsFiles) {
  const test::temp_folder folder;
  for (const char* name : {"idx_uint16_3docs", "preprocess_lines"}) {
    for (const char* suffix : {".idx", ".bin"}) {
      std::filesystem::copy_file(test::golden("megatron") / (std::string(name) + suffix),
                                 folder / (std::string(name) + suffix));
    }
  }
  const auto sidecars = test::golden("sidecars");
  std::filesystem::copy_file(sidecars / "idx_uint16_3docs.sum", folder / "idx_uint16_3docs.sum");
  const auto expect_made = [&](const std::string& name, const packing_options& options,
                               const std::string& table) {
    const index_columns data(folder / name);
    const auto path = row_table_path(data, options);
    EXPECT_EQ(path.filename(), table);
    EXPECT_FALSE(open_row_table(data, options, path).was_cached);
    EXPECT_EQ(test::read_bytes(path), test::read_bytes(sidecars / table));
    // A table that generate.py wrote is also accepted as a cached table.
    std::filesystem::copy_file(sidecars / table, path,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_TRUE(open_row_table(data, options, path).was_cached);
  };
  expect_made("idx_uint16_3docs", {.seq_len = 4}, "idx_uint16_3docs.rows-4");
  expect_made("preprocess_lines",
              {.seq_len = 8, .pad_documents_to = 2, .first_document = 1, .last_document = 9},
              "preprocess_lines.rows-8-2-1-9");
}

}  // namespace
}  // namespace millrace::dataset
