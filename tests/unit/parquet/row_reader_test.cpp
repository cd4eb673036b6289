// SPDX-License-Identifier: Apache-2.0
#include <millrace/parquet/row_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <millrace/parquet/file.hpp>

#include "support/paths.hpp"
#include "support/small_parquet.hpp"

namespace millrace::parquet {
namespace {

using test::levels;
using test::parquet_lines;
using test::parquet_of;
using test::parquet_refusal;
using test::plain_texts;
using test::small_parquet;
using testing::HasSubstr;

std::shared_ptr<const file> of_corpus(const std::string& name) {
  return file::open(test::source_folder() / "tests/fuzz/corpus/parquet" / name);
}

TEST(ParquetRows, EscapeOnlyWhatJsonRequires) {
  EXPECT_EQ(parquet_lines(parquet_of({"", "a\"b\\c\n\r\t\b\f\x01\x1f\x7f/", "h\xC3\xA9 \xFF"})),
            "{\"text\":\"\"}\n"
            "{\"text\":\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\x7f/\"}\n"
            "{\"text\":\"h\xC3\xA9 \xFF\"}\n");
}

TEST(ParquetRows, EscapeAtEveryPlaceOfALongText) {
  for (const std::size_t size : {1U, 15U, 16U, 17U, 31U, 33U, 65535U, 65536U, 65537U, 200000U}) {
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      std::string text(size, 'x');
      text[at] = '\n';
      const std::string wanted = std::string(at, 'x') + "\\n" + std::string(size - at - 1, 'x');
      EXPECT_EQ(parquet_lines(parquet_of({text, text})),
                "{\"text\":\"" + wanted + "\"}\n{\"text\":\"" + wanted + "\"}\n");
    }
  }
}

TEST(ParquetRows, HaveNumbersAsPythonPrintsThem) {
  small_parquet file;
  file.root_children = 5;
  file.schema = {{.name = "double", .type = 5},
                 {.name = "float", .type = 4},
                 {.name = "uint32", .type = 1, .converted = 13},
                 {.name = "int64", .type = 2},
                 {.name = "uint64", .type = 2, .converted = 14}};
  const auto chunk = [](int type, std::string body) {
    return test::parquet_chunk{
        .type = type, .pages = {{.body = std::move(body), .values = 3}}, .values = 3};
  };
  file.chunks = {
      chunk(5, test::le(1.0) + test::le(std::numeric_limits<double>::quiet_NaN()) + test::le(-0.0)),
      chunk(4,
            test::le(0.1F) + test::le(-std::numeric_limits<float>::infinity()) + test::le(1e20F)),
      chunk(1, test::le(0) + test::le(-1) + test::le(7)),
      chunk(2, test::le(INT64_MIN) + test::le(INT64_MAX) + test::le(std::int64_t{0})),
      chunk(2, test::le(UINT64_MAX) + test::le(std::int64_t{1}) + test::le(std::int64_t{2}))};
  file.rows = 3;
  EXPECT_EQ(parquet_lines(file),
            "{\"double\":1.0,\"float\":0.10000000149011612,\"uint32\":0,"
            "\"int64\":-9223372036854775808,\"uint64\":18446744073709551615}\n"
            "{\"double\":NaN,\"float\":-Infinity,\"uint32\":4294967295,"
            "\"int64\":9223372036854775807,\"uint64\":1}\n"
            "{\"double\":-0.0,\"float\":100000002004087734272.0,\"uint32\":7,\"int64\":0,"
            "\"uint64\":2}\n");
}

TEST(ParquetRows, AreThoseOfOurOwnWriter) {
  EXPECT_EQ(parquet_lines(file::open(test::golden("packed_parquet/two_rows.idx.parquet"))),
            "{\"input_ids\":[5,6,7,2],\"loss_mask\":[0,1,1,0],\"seq_start_id\":[0]}\n"
            "{\"input_ids\":[300,2,8,9,2],\"loss_mask\":[1,0,0,1,0],\"seq_start_id\":[0,2]}\n");
}

TEST(ParquetRows, AreTheSameWithEveryCodec) {
  const std::string wanted = parquet_lines(of_corpus("codec_none_1"));
  EXPECT_THAT(wanted,
              HasSubstr("{\"text\":\"one\"}\n{\"text\":null}\n{\"text\":\"two\\n\\\"lines"));
  for (const std::string codec : {"none", "zstd", "gzip", "snappy", "brotli", "lz4"}) {
    if (optional_codecs().find("without " + codec) != std::string::npos) continue;
    EXPECT_EQ(parquet_lines(of_corpus("codec_" + codec + "_1")), wanted) << codec;
    EXPECT_EQ(parquet_lines(of_corpus("codec_" + codec + "_2")), wanted) << codec;
  }
}

TEST(ParquetRows, AreTheSameWithEveryEncodingOfTexts) {
  const std::string wanted = parquet_lines(of_corpus("codec_none_1"));
  for (const std::string encoding : {"plain", "delta_length_byte_array", "delta_byte_array"}) {
    EXPECT_EQ(parquet_lines(of_corpus("text_" + encoding)), wanted) << encoding;
  }
}

TEST(ParquetRows, KeepOnlySelectedFields) {
  const auto file = of_corpus("nested_struct_1");
  EXPECT_EQ(parquet_lines(file, {{"struct", "b", "c"}}),
            "{\"struct\":{\"b\":{\"c\":1}}}\n{\"struct\":null}\n{\"struct\":{\"b\":null}}\n"
            "{\"struct\":{\"b\":{\"c\":1}}}\n{\"struct\":null}\n{\"struct\":{\"b\":null}}\n");
}

// The forms of lists that older programs wrote, after the specification's examples.
TEST(ParquetRows, KnowTheOlderFormsOfLists) {
  const auto with = [](std::vector<test::parquet_element> schema) {
    small_parquet file;
    file.schema = std::move(schema);
    // Two rows: [5, 6] and an empty list. A required list has one level of definition.
    const std::string body = levels({0, 1, 0}) + levels({1, 1, 0}) + test::le(5) + test::le(6);
    file.chunks = {{.type = 1, .pages = {{.body = body, .values = 3}}, .values = 3}};
    file.rows = 2;
    return parquet_lines(file);
  };
  const test::parquet_element list = {.name = "ids", .children = 1, .converted = 3};
  const std::string plain = "{\"ids\":[5,6]}\n{\"ids\":[]}\n";
  // No group LIST, an element without a group, and a group around the element.
  EXPECT_EQ(with({{.name = "ids", .repetition = 2, .type = 1}}), plain);
  EXPECT_EQ(with({list, {.name = "element", .repetition = 2, .type = 1}}), plain);
  EXPECT_EQ(
      with({list, {.name = "bag", .repetition = 2, .children = 1}, {.name = "element", .type = 1}}),
      plain);
  // A group that is the element: by its name, or by the name of the list.
  for (const std::string name : {"array", "ids_tuple"}) {
    EXPECT_EQ(
        with({list, {.name = name, .repetition = 2, .children = 1}, {.name = "n", .type = 1}}),
        "{\"ids\":[{\"n\":5},{\"n\":6}]}\n{\"ids\":[]}\n");
  }
}

TEST(ParquetRows, BeginAtAnyRow) {
  auto made = parquet_of({"a", "b", "c"});
  made.chunks[0].pages.push_back({.body = plain_texts({"d", "e"}), .values = 2});
  made.rows = made.chunks[0].values = 5;
  const test::parquet_on_disk disk(made);
  const std::vector<column_path> paths = {{"text"}};
  const selection columns(disk.open(), paths);
  for (std::uint64_t row = 0; row <= 5; ++row) {
    test::text_keeper sink;
    row_reader rows(columns, 0, row);
    EXPECT_EQ(rows.read(sink, 100, 1000), 5 - row);
    EXPECT_EQ(rows.read(sink, 100, 1000), 0);
    EXPECT_EQ(sink.text.size(), (5 - row) * 13);
  }
}

TEST(ParquetRows, BeginAtAnyRowOfNestedColumns) {
  for (const std::string name : {"nested_list_1", "nested_lists_2", "nested_messages_1"}) {
    const auto file = of_corpus(name);
    const std::string whole = parquet_lines(file);
    const std::vector<column_path> paths = {{file->column_names().front()}};
    const selection columns(file, paths);
    EXPECT_THAT(columns.cut_rows(0), testing::ElementsAre(testing::Field(&row_cut::row, 0)));
    std::size_t offset = 0;
    for (std::uint64_t row = 0; row < file->row_count(); ++row) {
      test::text_keeper sink;
      row_reader rows(columns, 0, row);
      EXPECT_EQ(rows.read(sink, 100, 1 << 20), file->row_count() - row);
      EXPECT_EQ(sink.text, whole.substr(offset)) << name << " row " << row;
      offset = whole.find('\n', offset) + 1;
    }
  }
}

// The codec LZ4 came to mean frames of Hadoop, and for some programs a block alone.
TEST(ParquetRows, KnowBothFormsOfTheOldLz4) {
  if (optional_codecs().find("without lz4") != std::string::npos) GTEST_SKIP() << "needs lz4";
  const std::string half = plain_texts({"one"});
  const std::string block = "\x70" + half;  // seven literals, and no match
  const std::string frame = std::string("\0\0\0\7\0\0\0\10", 8) + block;
  const auto with = [&](int codec, const std::string& body, std::size_t rows) {
    auto file = parquet_of(std::vector<std::string>(rows, "one"));
    file.chunks[0].codec = codec;
    file.chunks[0].pages[0].uncompressed_bytes =
        static_cast<int>(file.chunks[0].pages[0].body.size());
    file.chunks[0].pages[0].body = body;
    return file;
  };
  const std::string line = "{\"text\":\"one\"}\n";
  EXPECT_EQ(parquet_lines(with(5, frame, 1)), line);
  EXPECT_EQ(parquet_lines(with(5, frame + frame, 2)), line + line);
  EXPECT_EQ(parquet_lines(with(5, block, 1)), line);
  EXPECT_EQ(parquet_lines(with(7, block, 1)), line);
  EXPECT_THAT(parquet_refusal(with(7, frame, 1)), HasSubstr("cannot be decompressed with LZ4_RAW"));
  EXPECT_THAT(parquet_refusal(with(5, frame, 2)), HasSubstr("cannot be decompressed with LZ4 "));
}

TEST(ParquetRows, KnowGzipOfSeveralMembers) {
  auto file = parquet_of({"one", "one"});
  // A member whose one block stores the text `one`, with its size in front.
  const std::string member = std::string("\x1F\x8B\x08\0\0\0\0\0\0\3\x01\x07\0\xF8\xFF", 15) +
                             plain_texts({"one"}) + test::le(0x29A99A00U) + test::le(7U);
  file.chunks[0].codec = 2;
  file.chunks[0].pages[0].uncompressed_bytes = 14;
  file.chunks[0].pages[0].body = member + member;
  EXPECT_EQ(parquet_lines(file), "{\"text\":\"one\"}\n{\"text\":\"one\"}\n");
  file.chunks[0].pages[0].body = member;
  EXPECT_THAT(parquet_refusal(file), HasSubstr("only 7 bytes come out"));
  file.chunks[0].pages[0].body = member + member.substr(0, 20);
  EXPECT_THAT(parquet_refusal(file), HasSubstr("cannot be decompressed with GZIP"));
}

TEST(ParquetRows, CheckChecksumsOfPages) {
  auto file = parquet_of({"one"});
  file.chunks[0].pages[0].crc = static_cast<std::int32_t>(0x29A99A00U);
  EXPECT_EQ(parquet_lines(file), "{\"text\":\"one\"}\n");
  file.chunks[0].pages[0].body.back() = 'f';
  EXPECT_THAT(parquet_refusal(file), HasSubstr("does not have the checksum"));
}

TEST(ParquetRows, EndEarlyAfterEnoughBytes) {
  const test::parquet_on_disk disk(parquet_of({"a", "b", "c", "d"}));
  const std::vector<column_path> paths = {{"text"}};
  const selection columns(disk.open(), paths);
  row_reader rows(columns, 0);
  test::text_keeper sink;
  EXPECT_EQ(rows.read(sink, 100, 1), 1);
  EXPECT_EQ(rows.read(sink, 1, 100), 1);
  EXPECT_EQ(rows.read(sink, 100, 14), 2);
  EXPECT_EQ(rows.read(sink, 100, 14), 0);
}

TEST(ParquetRows, MustBeAsManyAsTheFooterStates) {
  auto few = parquet_of({"a", "b"});
  few.rows = 3;
  EXPECT_THAT(parquet_refusal(few),
              HasSubstr("the pages end after row 2, but the footer states 3 rows"));
  auto many = parquet_of({"a", "b"});
  many.rows = 1;
  EXPECT_THAT(parquet_refusal(many), HasSubstr("more than the 1 rows that the footer states"));
  auto values = parquet_of({"a", "b"});
  values.chunks[0].values = 1;
  EXPECT_THAT(parquet_refusal(values),
              HasSubstr("the pages have more values than the footer states"));
  values.chunks[0].values = 3;
  EXPECT_THAT(parquet_refusal(values),
              HasSubstr("1 of the values that the footer states are missing"));
}

TEST(ParquetRows, NameTheDamageOfAPage) {
  const auto with = [](auto change) {
    auto file = parquet_of({"one", "two"});
    change(file.chunks[0].pages[0]);
    return parquet_refusal(file);
  };
  EXPECT_THAT(
      with([](auto& page) { page.body[0] = 99; }),
      HasSubstr("column 'text' of row group 0: a page has a text of 99 bytes, and ends after "
                "10; the file is damaged (at byte 4)"));
  EXPECT_THAT(with([](auto& page) { page.body.resize(7); }),
              HasSubstr("a page has fewer values than its header states"));
  EXPECT_THAT(with([](auto& page) { page.crc = 1; }),
              HasSubstr("does not have the checksum that its header states"));
  EXPECT_THAT(with([](auto& page) { page.uncompressed_bytes = 15; }),
              HasSubstr("a page of 14 bytes should have 15, although it is not compressed"));
  EXPECT_THAT(with([](auto& page) { page.encoding = 8; }), HasSubstr("needs a dictionary"));
  EXPECT_THAT(
      with([](auto& page) { page.encoding = 5; }),
      HasSubstr("has the encoding DELTA_BINARY_PACKED, which cannot be read for this type"));
  EXPECT_THAT(with([](auto& page) { page.encoding = 77; }), HasSubstr("number 77"));
  EXPECT_THAT(with([](auto& page) { page.values = -1; }), HasSubstr("a size below 0"));
}

TEST(ParquetRows, CheckIndicesOfDictionaries) {
  auto file = parquet_of({"one", "two"});
  // Indices of 8 bits: a run of one 1, and a run of one `index`.
  const auto with = [&](char index) {
    file.chunks[0].pages = {
        {.body = plain_texts({"one", "two"}), .values = 2, .type = 2},
        {.body = std::string("\x08\x02\x01\x02", 4) + index, .values = 2, .encoding = 8}};
    return file;
  };
  EXPECT_EQ(parquet_lines(with(0)), "{\"text\":\"two\"}\n{\"text\":\"one\"}\n");
  EXPECT_THAT(parquet_refusal(with(2)),
              HasSubstr("has the dictionary index 2, but the dictionary has 2 entries"));
  auto twice = with(0);
  twice.chunks[0].pages.insert(twice.chunks[0].pages.begin(), twice.chunks[0].pages[0]);
  EXPECT_THAT(parquet_refusal(twice), HasSubstr("there is a second dictionary"));
}

// Few bytes must not make much memory.
TEST(ParquetRows, RefuseSizesThatBytesCannotBecome) {
  for (const int codec : {1, 2, 6, 7}) {
    auto file = parquet_of({"one"});
    file.chunks[0].codec = codec;
    file.chunks[0].pages[0].body = std::string("\xFF\xFF\xFF\xFF\x07", 5) + std::string(35, 'x');
    file.chunks[0].pages[0].uncompressed_bytes = std::numeric_limits<std::int32_t>::max();
    EXPECT_THAT(parquet_refusal(file), testing::AnyOf(HasSubstr("40 bytes cannot become so many"),
                                                      HasSubstr("lacks the library")));
  }
}

TEST(ParquetRows, CheckLevels) {
  small_parquet file;
  file.schema = {{.name = "text", .repetition = 1, .type = 6}};
  const auto with = [&](const std::string& body) {
    file.chunks = {{.pages = {{.body = body, .values = 2}}, .values = 2}};
    file.rows = 2;
    return file;
  };
  EXPECT_EQ(parquet_lines(with(levels({1, 0}) + plain_texts({"x"}))),
            "{\"text\":\"x\"}\n{\"text\":null}\n");
  EXPECT_THAT(parquet_refusal(with(levels({1}) + plain_texts({"x"}))),
              HasSubstr("a page has fewer levels than values"));
  EXPECT_THAT(parquet_refusal(with(levels({1, 9}) + plain_texts({"x"}))),
              HasSubstr("a page has the level 9, but the largest of this column is 1"));
  EXPECT_THAT(parquet_refusal(with(test::le(1000U))),
              HasSubstr("levels of 1000 bytes, more than the page has"));
  auto packed = with(levels({1, 0}) + plain_texts({"x"}));
  packed.chunks[0].pages[0].level_encoding = 4;
  EXPECT_THAT(parquet_refusal(packed),
              HasSubstr("has levels of the encoding BIT_PACKED, and only"));
}

TEST(ParquetRows, RefuseColumnsOfAStructThatDisagree) {
  small_parquet file;
  file.schema = {{.name = "list", .repetition = 2, .children = 2},
                 {.name = "a", .type = 1},
                 {.name = "b", .type = 1}};
  const auto chunk = [](const std::vector<int>& repetition, const std::vector<int>& definition) {
    std::string body = levels(repetition) + levels(definition);
    for (const int level : definition) body += level == 1 ? test::le(7) : "";
    const int values = static_cast<int>(repetition.size());
    return test::parquet_chunk{
        .type = 1, .pages = {{.body = body, .values = values}}, .values = values};
  };
  file.rows = 2;
  file.chunks = {chunk({0, 1, 0}, {1, 1, 1}), chunk({0, 1, 0}, {1, 1, 1})};
  EXPECT_EQ(parquet_lines(file),
            "{\"list\":[{\"a\":7,\"b\":7},{\"a\":7,\"b\":7}]}\n{\"list\":[{\"a\":7,\"b\":7}]}\n");
  const std::string disagrees = "disagrees with the other columns of its struct or list";
  file.chunks[1] = chunk({0, 0}, {1, 1});
  EXPECT_THAT(parquet_refusal(file), HasSubstr("row 0 " + disagrees));
  file.chunks[1] = chunk({0, 1, 0}, {1, 1, 0});
  EXPECT_THAT(parquet_refusal(file), HasSubstr("row 1 " + disagrees));
  file.chunks[1] = chunk({1, 1, 0}, {1, 1, 1});
  EXPECT_THAT(parquet_refusal(file), HasSubstr("row 0 does not begin where a row begins"));
}

}  // namespace
}  // namespace millrace::parquet
