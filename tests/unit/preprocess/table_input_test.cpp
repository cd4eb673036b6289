// SPDX-License-Identifier: Apache-2.0
#include "input/table_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/src.hpp>

#include "input/block_readers.hpp"
#include "input/block_source.hpp"
#include "output/committer.hpp"
#include "run/pipeline.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_sample.hpp"
#include "support/parquet_table.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<std::string> table_keys = {"text", "title"};
const plan_options both_columns = {.columns = {.paths = {{"text"}, {"title"}}}};

// The JSON of a row as formats/spec/meta.md defines it. The columns are those of the file.
std::string naive_line(const test::parquet_row& row, const std::vector<std::size_t>& columns) {
  std::string line = "{";
  for (const std::size_t i : columns) {
    line += (line.size() > 1 ? ",\"" : "\"") + table_keys[i] + "\":";
    if (!row[i]) {
      line += "null";
      continue;
    }
    line += '"';
    for (const char c : *row[i]) {
      if (c == '"' || c == '\\') {
        line += std::string("\\") + c;
      } else if (c == '\n') {
        line += "\\n";
      } else if (c == '\x01') {
        line += "\\u0001";
      } else {
        line += c;
      }
    }
    line += '"';
  }
  return line + "}\n";
}

class TableInput : public testing::Test {
 protected:
  std::string path() const { return (folder_ / "in.parquet").string(); }
  input_file write(const test::parquet_table& table, const plan_options& options = both_columns) {
    test::write_text(path(), test::encode_parquet(table, random_));
    return plan_inputs(std::vector{path()}, options).at(0);
  }

  std::mt19937_64 random_{test::seed(81)};
  const test::temp_folder folder_{test::quick_folder()};
};

TEST_F(TableInput, RangesSideBySideShareAllRows) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const test::parquet_table table = test::random_table(random_, table_keys, 120, true);
    const bool one = random_() % 2 == 0;
    const input_file file =
        write(table, one ? plan_options{.columns = {.paths = {{"title"}}}} : both_columns);
    const std::vector<std::size_t> columns =
        one ? std::vector<std::size_t>{1} : std::vector<std::size_t>{0, 1};
    const std::uint64_t rows = table.rows.size();
    std::vector<std::uint64_t> cuts = {0, rows, random_() % (rows + 1), random_() % (rows + 1)};
    std::ranges::sort(cuts);
    // With the small limit, most row groups are read in sequence.
    const read_limits limits{.block_bytes = 1 + random_() % 2000,
                             .giant_bytes = random_() % 2 == 0 ? 100 : 16U << 20};
    std::uint64_t row = 0;
    std::uint64_t read_bytes = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      if (cuts[part] == cuts[part + 1]) continue;
      block_source source(std::span(&file, 1),
                          {.begin = {0, cuts[part]}, .end = {0, cuts[part + 1]}}, limits);
      read_bytes = 0;
      row_text reader;
      for (byte_block block; source.next(block);) {
        read_span(block, limits, reader);
        EXPECT_GE(block.read_bytes, read_bytes);
        read_bytes = block.read_bytes;
        do {
          ASSERT_TRUE(block.has_rows);
          ASSERT_EQ(block.begin, row);
          ASSERT_GE(block.buffer.capacity(), block.text_bytes + text_padding_bytes);
          std::string expected;
          for (; row < block.end; ++row) expected += naive_line(table.rows[row], columns);
          ASSERT_EQ(block.text(), expected);
        } while (read_more_rows(block, limits, reader));
      }
      ASSERT_EQ(row, cuts[part + 1]);
    }
    EXPECT_LE(read_bytes, file.size_bytes);

    std::string all;
    const auto source = table_input(file).open_at(cuts[1]);
    std::vector<std::byte> piece(1 + random_() % 300);
    while (const std::size_t n = source->read(piece)) {
      all.append(reinterpret_cast<const char*>(piece.data()), n);
    }
    std::string expected;
    for (row = cuts[1]; row < rows; ++row) expected += naive_line(table.rows[row], columns);
    EXPECT_EQ(all, expected);
  }
}

TEST_F(TableInput, FindsRowsByBytes) {
  const test::parquet_table table = test::random_table(random_, table_keys, 2000, false);
  const input_file file = write(table);
  const table_input input(file);
  ASSERT_EQ(input.row_count(), table.rows.size());
  std::uint64_t byte = 0;
  for (std::uint64_t row = 0; row <= input.row_count(); ++row) {
    EXPECT_GE(input.byte_of(row), byte);
    byte = input.byte_of(row);
    EXPECT_LE(input.row_before(byte), row);
  }
  EXPECT_EQ(byte, file.size_bytes);
  EXPECT_EQ(input.row_before(0), 0U);
}

// A run over a table gives the tokens, masks and checksums of a run over its rows as JSON lines.
TEST_F(TableInput, GivesTheTokensOfItsLines) {
  const auto tokenizer = test::byte_tokenizer();
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    test::parquet_table table = test::random_table(random_, table_keys, 100, true);
    table.rows.push_back({"a", "b"});
    write(table);
    std::string lines;
    for (const auto& row : table.rows) lines += naive_line(row, {0, 1});
    const std::string by_hand = (folder_ / "in.jsonl").string();
    test::write_text(by_hand, lines);
    run_options options;
    options.keys = plain_keys(table_keys);
    options.on_bad_record = bad_record_policy::skip;
    options.append_eod = true;
    options.output_prefix = folder_ / "lines";
    options.inputs = plan_inputs(std::vector{by_hand});
    options.overwrite = true;
    const run_summary of_lines = run(*tokenizer, options, quiet);
    options.output_prefix = folder_ / "table";
    options.inputs = plan_inputs(std::vector{path()}, both_columns);
    test::run_in_pieces(*tokenizer, options, random_, 0);
    for (const std::string& key : table_keys) {
      for (const char* suffix : {".bin", ".idx", ".sum"}) {
        const std::string end = "_" + key + "_document" + suffix;
        EXPECT_TRUE(test::read_text(folder_ / ("lines" + end)) ==
                    test::read_text(folder_ / ("table" + end)))
            << end;
      }
    }
    EXPECT_EQ(of_lines.counts.documents + of_lines.counts.bad_record_total(),
              static_cast<std::int64_t>(table.rows.size()));
  }
}

TEST_F(TableInput, NamesTheRowOfABadRecord) {
  const auto tokenizer = test::byte_tokenizer();
  test::parquet_table table{table_keys, std::vector<test::parquet_row>(30, {"a", "b"})};
  table.rows[17] = {"a", std::nullopt};
  write(table);
  run_options options;
  options.keys = plain_keys({"title"});
  options.output_prefix = folder_ / "out";
  options.inputs = plan_inputs(std::vector{path()}, {.columns = {.paths = {{"title"}}}});
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  EXPECT_THAT([&] { (void)run(*tokenizer, options, quiet); },
              ThrowsMessage<bad_record_error>(
                  HasSubstr(path() + ", row 17: key \"title\" holds null, expected a string")));
  options.on_bad_record = bad_record_policy::quarantine;
  options.overwrite = true;
  (void)run(*tokenizer, options, quiet);
  EXPECT_THAT(test::read_text(folder_ / "out_title_document.bad"),
              HasSubstr(R"("line": 18, "row": 17, "bytes": 14, "fault": "wrong_type")"));
}

TEST_F(TableInput, RefusesAFileThatChanged) {
  const input_file file = write({table_keys, std::vector<test::parquet_row>(30, {"a", "b"})});
  write({table_keys, std::vector<test::parquet_row>(31, {"a", "b"})});
  EXPECT_THAT([&] { table_input{file}; },
              ThrowsMessage<format_error>(HasSubstr("the file became longer")));
}

TEST_F(TableInput, TellsOfSeveralSplitsInAFolder) {
  const auto name = [&](const std::string& file) { return folder_ / file; };
  const std::string bytes = test::encode_parquet({table_keys, {{"a", "b"}}}, random_);
  std::string told;
  const plan_options options{.columns = both_columns.columns,
                             .tell = [&](const std::string& note) { told += note; }};
  const auto plan = [&] {
    told.clear();
    (void)plan_inputs(std::vector{folder_.path().string()}, options);
    return told;
  };
  test::write_text(name("train-00000-of-00002.parquet"), bytes);
  test::write_text(name("train-00001-of-00002.parquet"), bytes);
  test::write_text(name("x-00000-of-1.parquet"), bytes);
  EXPECT_EQ(plan(), "");
  test::write_text(name("test-00000-of-00001.parquet"), bytes);
  EXPECT_EQ(plan(), "--input " + folder_.path().string() +
                        ": all of its splits are read (test, train); to read only train, pass '" +
                        name("train-*.parquet").string() + "'");
  std::filesystem::create_directory(name("b"));
  test::write_text(name("b/train-00000-of-00001.parquet"), bytes);
  EXPECT_THAT(plan(), testing::EndsWith("train-*.parquet' and the same in its other folders"));
}

// It is what is left of a download that failed.
TEST_F(TableInput, RefusesAnEmptyFile) {
  test::write_text(path(), "");
  EXPECT_THAT([&] { (void)plan_inputs(std::vector{path()}, both_columns); },
              ThrowsMessage<config_error>(HasSubstr("the name ends in .parquet")));
}

// A sample takes the rows whose numbers formats/spec/meta.md defines.
TEST_F(TableInput, SamplesByRow) {
  const auto tokenizer = test::byte_tokenizer();
  test::parquet_table table = test::random_table(random_, table_keys, 400, false);
  table.rows.resize(300, {"a", "b"});
  write(table);
  run_options options;
  options.keys = plain_keys({"title"});
  options.output_prefix = folder_ / "sample";
  options.inputs = plan_inputs(std::vector{path()}, {.columns = {.paths = {{"title"}}}});
  options.sample = {.rate = 0.3, .seed = 5};
  test::run_in_pieces(*tokenizer, options, random_, 2);
  const std::string src = test::read_text(folder_ / "sample_title_document.src");
  const auto places = formats::parse_src(std::as_bytes(std::span(src)));
  std::vector<std::uint64_t> found;
  for (std::uint64_t d = 0; d < places.document_count(); ++d) {
    EXPECT_EQ(places.at(d).end, places.at(d).begin + 1);
    found.push_back(places.at(d).begin);
  }
  std::vector<std::uint64_t> wanted;
  for (std::uint64_t row = 0; row < 300; ++row) {
    const auto number = static_cast<double>(test::sample_number(5, path(), row));
    if (number < 0.3 * 0x1p53) wanted.push_back(row);
  }
  EXPECT_EQ(found, wanted);
}

TEST_F(TableInput, RefusesAFolderOfTablesAndLines) {
  write({table_keys, {{"a", "b"}}});
  test::write_text(folder_ / "README.md", "text");
  std::string told;
  const plan_options options{.columns = both_columns.columns,
                             .tell = [&](const std::string& note) { told += note; }};
  const auto files = plan_inputs(std::vector{folder_.path().string()}, options);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_THAT(told, HasSubstr("only the Parquet files of this folder are read, not "));
  EXPECT_THAT(told, HasSubstr("README.md"));
  test::write_text(folder_ / "more.jsonl.gz", "text");
  EXPECT_THAT([&] { (void)plan_inputs(std::vector{folder_.path().string()}, options); },
              ThrowsMessage<config_error>(HasSubstr("more.jsonl.gz")));
}

}  // namespace
}  // namespace millrace::preprocess
