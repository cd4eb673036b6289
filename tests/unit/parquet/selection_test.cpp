// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/selection.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <millrace/parquet/file.hpp>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "support/small_parquet.hpp"

namespace millrace::parquet {
namespace {

using test::parquet_of;
using test::parquet_on_disk;
using testing::ElementsAre;
using testing::HasSubstr;

std::string selection_refusal(const test::small_parquet& made, const column_path& path) {
  const parquet_on_disk disk(made);
  return test::config_refusal([&] {
    const std::vector<column_path> paths = {path};
    return selection(disk.open(), paths);
  });
}

/// A struct `meta` of a text and a list of int32, and a column of the given type.
test::small_parquet nested_with(const test::parquet_element& other) {
  test::small_parquet file;
  file.root_children = 2;
  file.schema = {{.name = "meta", .repetition = 1, .children = 2},
                 {.name = "text", .type = 6},
                 {.name = "ids", .children = 1, .converted = 3},
                 {.name = "list", .repetition = 2, .children = 1},
                 {.name = "element", .type = 1},
                 other};
  file.chunks = {{.type = 6}, {.type = 1}, {.type = other.type.value_or(6)}};
  return file;
}

TEST(ParquetSelection, NamesTheColumnsOfAFile) {
  const auto file = nested_with({.name = "other", .type = 6});
  EXPECT_THAT(selection_refusal(file, {"txt"}),
              HasSubstr("there is no column 'txt'; the columns of the file are 'meta', 'other'"));
  EXPECT_THAT(selection_refusal(file, {"meta", "txt"}),
              HasSubstr("there is no column 'meta.txt'; the fields of 'meta' are 'text', 'ids'"));
  EXPECT_THAT(selection_refusal(file, {"other", "x"}), HasSubstr("column 'other' is not a struct"));
  EXPECT_THAT(selection_refusal(file, {"meta", "ids", "element"}),
              HasSubstr("column 'meta.ids' is a list, so no field in it can be selected"));
  EXPECT_THAT(selection_refusal(file, {}), HasSubstr("expected at least one name"));
  EXPECT_EQ(selection_refusal(file, {"meta", "ids"}), "accepted");
  const parquet_on_disk disk(file);
  EXPECT_THAT(test::config_refusal([&] { return selection(disk.open(), {}); }),
              HasSubstr("no column was selected; expected at least one"));
}

TEST(ParquetSelection, RefusesTheSameNameTwice) {
  EXPECT_THAT(selection_refusal(nested_with({.name = "meta", .type = 6}), {"meta"}),
              HasSubstr("two columns have the name 'meta'"));
}

TEST(ParquetSelection, NamesTheTypesThatItCannotRead) {
  const auto of = [](test::parquet_element element) {
    element.name = "other";
    const auto file = nested_with(element);
    EXPECT_EQ(selection_refusal(file, {"meta"}), "accepted") << "the type is in another column";
    return selection_refusal(file, {"other"});
  };
  EXPECT_THAT(of({.type = 3}), HasSubstr("column 'other' is of type INT96, which cannot be read"));
  EXPECT_THAT(of({.type = 7}), HasSubstr("FIXED_LEN_BYTE_ARRAY"));
  EXPECT_THAT(of({.type = 1, .converted = 5}), HasSubstr("DECIMAL"));
  EXPECT_THAT(of({.type = 1, .converted = 6}), HasSubstr("DATE"));
  EXPECT_THAT(of({.type = 2, .converted = 10}), HasSubstr("TIMESTAMP_MICROS"));
  EXPECT_THAT(of({.type = 7, .converted = 21}), HasSubstr("INTERVAL"));
  EXPECT_THAT(of({.type = 6, .converted = 20}), HasSubstr("BSON"));
  EXPECT_THAT(of({.type = 6, .converted = 99}), HasSubstr("does not know"));
  EXPECT_THAT(of({.type = 7, .logical = 14}), HasSubstr("UUID"));
  EXPECT_THAT(of({.type = 7, .logical = 15}), HasSubstr("FLOAT16"));
  EXPECT_THAT(of({.type = 1, .logical = 6}), HasSubstr("DATE"));
  EXPECT_THAT(of({.type = 9}), HasSubstr("a physical type that this version does not know"));
  for (const int text : {0, 4, 19}) {  // UTF8, ENUM, JSON
    EXPECT_EQ(of({.type = 6, .converted = text}), "accepted");
  }
}

TEST(ParquetSelection, RefusesMapsAndListsOfUnknownForm) {
  test::small_parquet map;
  map.schema = {{.name = "map", .repetition = 1, .children = 1, .converted = 1},
                {.name = "key_value", .repetition = 2, .children = 2},
                {.name = "key", .type = 6},
                {.name = "value", .type = 6}};
  map.chunks = {{.type = 6}, {.type = 6}};
  EXPECT_THAT(selection_refusal(map, {"map"}), HasSubstr("column 'map' is of type MAP, which"));
  map.schema[0].converted = 3;
  map.schema[1].repetition = 0;
  EXPECT_THAT(selection_refusal(map, {"map"}), HasSubstr("a LIST without exactly one repeated"));
}

TEST(ParquetSelection, RefusesColumnsThatAreOutOfReach) {
  auto file = parquet_of({"one"});
  file.chunks[0].codec = 3;
  EXPECT_THAT(selection_refusal(file, {"text"}),
              HasSubstr("column 'text' is compressed with LZO: which millrace cannot decompress"));
  file = parquet_of({"one"});
  file.chunks[0].is_encrypted = true;
  EXPECT_THAT(selection_refusal(file, {"text"}), HasSubstr("column 'text' is encrypted"));
  file = parquet_of({"one"});
  for (const std::int64_t change : {std::int64_t{-1}, std::int64_t{1000}, INT64_MAX - 100}) {
    file.chunks[0].offset_change = change;
    EXPECT_THAT(test::parquet_refusal(file),
                HasSubstr("but the footer begins at byte 28; the file is damaged"));
  }
  file.chunks[0].offset_change = INT64_MIN;
  EXPECT_THAT(test::parquet_refusal(file), HasSubstr("has a size or an offset below 0"));
  file = parquet_of({"one"});
  file.chunks[0].type = 1;
  EXPECT_THAT(test::parquet_refusal(file), HasSubstr("has another type than the schema says"));
}

TEST(ParquetSelection, KnowsSizesAndPlaces) {
  const parquet_on_disk disk(parquet_of({"one", "two"}));
  const std::vector<column_path> paths = {{"text"}};
  const selection columns(disk.open(), paths);
  EXPECT_EQ(columns.file_offset(0), 4);
  EXPECT_GT(columns.text_bytes(0), 14);
}

TEST(ParquetSelection, CutsWherePagesBegin) {
  auto made = parquet_of({"a", "b", "c"});
  auto& pages = made.chunks[0].pages;
  pages.push_back({});  // without rows
  pages.push_back({.body = test::plain_texts({"d", "e"}), .values = 2});
  pages.push_back({.body = test::plain_texts({"f"}), .values = 1});
  made.rows = made.chunks[0].values = 6;
  const parquet_on_disk disk(made);
  const std::vector<column_path> paths = {{"text"}};
  const selection columns(disk.open(), paths);
  std::vector<std::uint64_t> rows;
  for (const row_cut& cut : columns.cut_rows(0)) {
    rows.push_back(cut.row);
    test::text_keeper sink;
    row_reader from(columns, 0, cut);
    EXPECT_EQ(from.read(sink, 100, 1 << 20), 6 - cut.row);
    EXPECT_THAT(sink.text, testing::EndsWith("{\"text\":\"f\"}\n"));
  }
  EXPECT_THAT(rows, ElementsAre(0, 3, 5));
}

TEST(ParquetCodecs, AreNamedWithTheirVersions) {
  EXPECT_THAT(optional_codecs(), testing::MatchesRegex("(snappy [0-9.]+|without snappy), "
                                                       "(lz4 [0-9.]+|without lz4), "
                                                       "(brotli [0-9.]+|without brotli)"));
}

}  // namespace
}  // namespace millrace::parquet
