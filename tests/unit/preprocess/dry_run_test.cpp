// SPDX-License-Identifier: Apache-2.0
#include "report/dry_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "support/compressed.hpp"
#include "support/paths.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

// Documents of about one to ninety bytes, with one token per byte.
struct corpus {
  std::string lines;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
};

corpus make_corpus(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  corpus out;
  while (out.lines.size() < bytes) {
    const std::size_t length = 1 + random() % 90;
    out.lines +=
        "{\"text\": \"" + std::string(length, static_cast<char>('a' + random() % 26)) + "\"}\n";
    ++out.documents;
    out.tokens += static_cast<std::int64_t>(length);
  }
  return out;
}

class DryRun : public testing::Test {
 protected:
  void add(const std::string& bytes, compression compressed_with = compression::none) {
    const auto path = folder_ / ("in" + std::to_string(inputs_.size()));
    std::ofstream(path, std::ios::binary) << bytes;
    inputs_.push_back({.path = path,
                       .compressed_with = compressed_with,
                       .size_bytes = bytes.size(),
                       .regular = true});
  }
  dry_run_report run() const {
    const auto encode = make_sample_encoder(*tokenizer_, {.keys = plain_keys({"text"}),
                                                          .append_eod = std::nullopt,
                                                          .dtype = formats::dtype::uint16});
    return dry_run({.inputs = inputs_, .workers = 2, .most_seconds = 60, .whole_bytes = 1 << 20},
                   encode);
  }
  static void expect_near(const estimate& found, std::int64_t truth) {
    EXPECT_NEAR(found.value, static_cast<double>(truth), 4 * found.error);
    EXPECT_GT(found.error, 0);
    EXPECT_LT(found.error, 0.02 * static_cast<double>(truth));
  }

  const test::temp_folder folder_;
  const std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
  std::vector<input_file> inputs_;
};

TEST_F(DryRun, OfLittleIsExact) {
  const corpus part = make_corpus(300'000, 1);
  add(part.lines);
  add(test::zstd(part.lines), compression::zstd);
  add("");
  const dry_run_report report = run();
  EXPECT_TRUE(report.exact);
  EXPECT_EQ(report.documents.value, 2 * part.documents);
  EXPECT_EQ(report.tokens.value, 2 * part.tokens);
  EXPECT_EQ(report.tokens.error, 0);
  EXPECT_EQ(report.input_bytes.value, 2 * part.lines.size());
  EXPECT_EQ(report.bin_bytes, 4 * part.tokens);
  EXPECT_EQ(report.idx_bytes, 34 + 24 * part.documents + 8 * (2 * part.documents + 1));
  EXPECT_THAT(report.notes, testing::IsEmpty());
  EXPECT_THAT(describe(report), HasSubstr("all of the input, so counts are exact"));
  EXPECT_THAT(describe(report), Not(HasSubstr("+-")));
}

TEST_F(DryRun, OfASampleIsThatPartOfAllRecords) {
  const corpus part = make_corpus(300'000, 1);
  add(part.lines);
  const auto encode = make_sample_encoder(
      *tokenizer_,
      {.keys = plain_keys({"text"}),
       .append_eod = std::nullopt,
       .dtype = formats::dtype::uint16,
       .sampler = std::make_shared<record_sampler>(sample_options{.rate = 0.25}, inputs_)});
  const dry_run_report report =
      dry_run({.inputs = inputs_, .record_rate = 0.25, .whole_bytes = 1 << 20}, encode);
  EXPECT_FALSE(report.exact);
  EXPECT_EQ(report.input_bytes.value, part.lines.size());
  EXPECT_EQ(report.documents.value, 0.25 * static_cast<double>(part.documents));
  EXPECT_EQ(report.tokens.value, 0.25 * static_cast<double>(part.tokens));
  EXPECT_EQ(report.bin_bytes, 0.5 * static_cast<double>(part.tokens));
  EXPECT_THAT(report.notes, testing::ElementsAre(HasSubstr("times --sample-rate")));
}

TEST_F(DryRun, SaysThatPermutationsDiffer) {
  const corpus part = make_corpus(300'000, 1);
  add(part.lines);
  const dry_run_report report =
      dry_run({.inputs = inputs_, .permutes = true, .whole_bytes = 1 << 20},
              make_sample_encoder(*tokenizer_, {.keys = plain_keys({"text"}),
                                                .append_eod = std::nullopt,
                                                .dtype = formats::dtype::uint16}));
  EXPECT_FALSE(report.exact);
  EXPECT_EQ(report.tokens.value, static_cast<double>(part.tokens));
  EXPECT_THAT(report.notes, testing::ElementsAre(HasSubstr("permutes other documents")));
}

TEST_F(DryRun, EndsAtTheNumberOfTokens) {
  const corpus part = make_corpus(300'000, 1);
  add(part.lines);
  const auto encode = make_sample_encoder(
      *tokenizer_,
      {.keys = plain_keys({"text"}), .append_eod = std::nullopt, .dtype = formats::dtype::uint16});
  const std::int64_t quarter = part.tokens / 4;
  dry_run_options options{.inputs = inputs_, .most_tokens = quarter};
  const dry_run_report report = dry_run(options, encode);
  EXPECT_FALSE(report.exact);
  EXPECT_NEAR(report.tokens.value, static_cast<double>(quarter), 1e-6);
  EXPECT_NEAR(report.documents.value, static_cast<double>(part.documents) / 4, 1);
  EXPECT_THAT(report.notes, testing::ElementsAre(HasSubstr("after about 25 % of the input")));
  options.most_tokens = part.tokens;
  EXPECT_TRUE(dry_run(options, encode).exact);
}

// The run ends when the larger dataset is full, whatever the smaller one has.
TEST_F(DryRun, EndsAtTheTokensOfTheLargestKey) {
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "{\"text\": \"0123456789\", \"title\": \"t\"}\n";
  add(lines);
  const auto encode = make_sample_encoder(*tokenizer_, {.keys = plain_keys({"title", "text"}),
                                                        .append_eod = std::nullopt,
                                                        .dtype = formats::dtype::uint16});
  const dry_run_report report =
      dry_run({.inputs = inputs_, .keys = 2, .most_tokens = 5000}, encode);
  EXPECT_NEAR(report.documents.value, 500, 1e-6);
  EXPECT_NEAR(report.tokens.value, 5500, 1e-6);
  EXPECT_THAT(report.notes, testing::ElementsAre(HasSubstr("after about 50 % of the input")));
}

TEST_F(DryRun, OfPlainFilesIsWithinItsError) {
  corpus all;
  for (const std::size_t megabytes : {30U, 1U, 15U}) {
    const corpus part = make_corpus(megabytes * 1'000'000, static_cast<unsigned>(megabytes));
    add(part.lines);
    all.documents += part.documents;
    all.tokens += part.tokens;
    all.lines += part.lines;
  }
  const dry_run_report report = run();
  EXPECT_FALSE(report.exact);
  EXPECT_EQ(report.input_bytes.value, all.lines.size());
  EXPECT_LT(report.sampled_bytes, 0.8 * static_cast<double>(all.lines.size()));
  expect_near(report.documents, all.documents);
  expect_near(report.tokens, all.tokens);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GT(report.memory_bytes, 1e6);
}

// The larger file has only empty documents. The sample must use each file in proportion to its
// size.
TEST_F(DryRun, TakesFromFilesByTheirSizes) {
  std::string blank;
  while (blank.size() < 30'000'000) blank += "{\"text\": \"\"}\n";
  const corpus part = make_corpus(10'000'000, 5);
  add(part.lines);
  add(blank);
  expect_near(run().tokens, part.tokens);
}

TEST_F(DryRun, OfCompressedFilesIsNear) {
  const corpus part = make_corpus(60'000'000, 6);
  add(test::zstd(part.lines), compression::zstd);
  const dry_run_report report = run();
  EXPECT_FALSE(report.exact);
  EXPECT_NEAR(report.tokens.value / static_cast<double>(part.tokens), 1, 0.05);
  EXPECT_NEAR(report.input_bytes.value / static_cast<double>(part.lines.size()), 1, 0.05);
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("only at their start")));
}

TEST_F(DryRun, OfManyCompressedFilesTakesSome) {
  corpus all;
  for (unsigned i = 0; i < 150; ++i) {
    const corpus part = make_corpus(500'000, i);
    add(test::zstd(part.lines), compression::zstd);
    all.documents += part.documents;
    all.tokens += part.tokens;
  }
  const dry_run_report report = run();
  EXPECT_FALSE(report.exact);
  EXPECT_EQ(report.sampled_places, 64);
  expect_near(report.tokens, all.tokens);
  expect_near(report.documents, all.documents);
}

// An array has to be read from its start, and its elements do not end at the line ends of the file.
TEST_F(DryRun, TakesAnArrayFromItsStart) {
  const corpus part = make_corpus(20'000'000, 12);
  std::string array = "[" + part.lines;
  for (std::size_t at = array.find('\n'); at + 1 < array.size(); at = array.find('\n', at + 1)) {
    array[at] = ',';
  }
  array.back() = ']';
  add(array);
  const dry_run_report report = run();
  EXPECT_NEAR(report.tokens.value / static_cast<double>(part.tokens), 1, 0.05);
  EXPECT_NEAR(report.documents.value / static_cast<double>(part.documents), 1, 0.05);
}

TEST_F(DryRun, StopsInTime) {
  add(make_corpus(30'000'000, 8).lines);
  const sample_encoder slow = [](std::string_view) { return sampled_counts{}; };
  for (const std::uint64_t whole_bytes : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
    const dry_run_report report =
        dry_run({.inputs = inputs_, .most_seconds = 0, .whole_bytes = whole_bytes}, slow);
    EXPECT_EQ(report.sampled_places, 2);
    EXPECT_FALSE(report.exact);
  }
}

TEST_F(DryRun, CountsBadRecordsWithoutEndingAtThem) {
  add("{\"text\": \"ab\"}\nbad\n{\"text\": \"c\"}\n");
  const dry_run_report report = run();
  EXPECT_EQ(report.documents.value, 2);
  EXPECT_EQ(report.tokens.value, 3);
  EXPECT_EQ(report.sampled.bad_record_total(), 1);
  EXPECT_THAT(describe(report), HasSubstr("1 record in the sample"));
}

TEST_F(DryRun, OfNothingIsNothing) {
  add("");
  const dry_run_report report = run();
  EXPECT_TRUE(report.exact);
  EXPECT_EQ(report.tokens.value, 0);
  EXPECT_EQ(report.seconds, 0);
  for (const char* word : {"nan", "inf"}) EXPECT_THAT(describe(report), Not(HasSubstr(word)));
}

TEST_F(DryRun, RefusesAPipe) {
  inputs_.push_back({.path = "/dev/null"});
  EXPECT_THAT([&] { (void)run(); },
              ThrowsMessage<config_error>(HasSubstr("/dev/null is not a regular file")));
}

TEST_F(DryRun, IsJsonToo) {
  add(make_corpus(1000, 9).lines);
  const dry_run_report report = run();
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  const std::string text = to_json(report);
  ASSERT_EQ(parser.parse(text).get(json), simdjson::SUCCESS) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  EXPECT_EQ(double(json["tokens"]), report.tokens.value);
  EXPECT_EQ(double(json["tokens_error"]), 0);
  EXPECT_EQ(double(json["bin_bytes"]), report.bin_bytes);
  EXPECT_TRUE(bool(json["exact"]));
  EXPECT_EQ(parser.parse(to_json(dry_run_report{})).get(json), simdjson::SUCCESS);
}

}  // namespace
}  // namespace millrace::preprocess
