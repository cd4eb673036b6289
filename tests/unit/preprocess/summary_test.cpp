// SPDX-License-Identifier: Apache-2.0
#include "report/summary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <simdjson.h>

#include <string>
#include <string_view>

namespace millrace::preprocess {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

run_summary example_summary() {
  run_summary s;
  s.counts.lines = 10;
  s.counts.blank_lines = 2;
  s.counts.documents = 5;
  s.counts.lone_surrogates = 4;
  s.counts.text_bytes = 1'000'000'000'000;
  s.counts.bad_records = {1, 2, 3, 4, 5, 6};
  s.outputs = {{.prefix = "out/we\"b\n_a_document",
                .sequences = 7,
                .documents = 5,
                .empty_documents = 1,
                .tokens = 100,
                .bin_bytes = 200},
               {.prefix = "out/b", .sequences = 8, .documents = 5, .tokens = 11}};
  s.dtype = "uint16";
  s.tokenizer = {.type = "GPT2BPETokenizer", .files = {"a\nb/vocab.json", "merges.txt"}};
  s.input_files = 3;
  s.input_bytes = 2'000'000;
  s.read_bytes = 1'000'000;
  s.seconds = 0.00001;
  s.cpu_seconds = 1.5;
  s.peak_rss_bytes = 12'345'678;
  s.workers = 7;
  s.busy = {.read = 0.00000125,
            .read_spans = 0.0000015,
            .encode = 0.00000175,
            .write = 0.0000075,
            .sync = 0.000001};
  return s;
}

class SummaryJson : public testing::Test {
 protected:
  void SetUp() override {
    text_ = to_json(example_summary());
    ASSERT_EQ(parser_.parse(text_).get(json_), simdjson::SUCCESS) << text_;
  }
  std::int64_t number(std::string_view pointer) const {
    std::int64_t value = -1;
    EXPECT_EQ(json_.at_pointer(pointer).get(value), simdjson::SUCCESS) << pointer;
    return value;
  }
  std::string string(std::string_view pointer) const {
    std::string_view value;
    EXPECT_EQ(json_.at_pointer(pointer).get(value), simdjson::SUCCESS) << pointer;
    return std::string(value);
  }
  double real(std::string_view pointer) const {
    double value = -1;
    EXPECT_EQ(json_.at_pointer(pointer).get(value), simdjson::SUCCESS) << pointer;
    return value;
  }

  std::string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element json_;
};

TEST(Summary, NamesTheFilesThatThereAre) {
  run_summary s = example_summary();
  s.outputs[0].prefix = "out/a_document";
  s.outputs[0].files = {"out/a_document.bin", "out/a_document.idx", "out/a_document.bad"};
  EXPECT_THAT(describe(s), HasSubstr("wrote out/a_document.bin (200 bytes), .idx and .bad\n"));
  EXPECT_THAT(to_json(s), HasSubstr("\"files\": [\"out/a_document.bin\", \"out/a_document.idx\", "
                                    "\"out/a_document.bad\"]"));
}

// The entry must stay on one line, so the line end in the path is escaped.
TEST(Summary, NamesTheTokenizerAndItsFiles) {
  EXPECT_THAT(describe(example_summary()),
              HasSubstr("\ntokenizer: GPT2BPETokenizer, a\\x0ab/vocab.json, merges.txt\n"));
}

TEST_F(SummaryJson, NamesTheTokenizerAndItsFiles) {
  EXPECT_EQ(string("/tokenizer_type"), "GPT2BPETokenizer");
  EXPECT_EQ(string("/tokenizer_files/0"), "a\nb/vocab.json");
  EXPECT_EQ(string("/tokenizer_files/1"), "merges.txt");
}

TEST_F(SummaryJson, IsOneLine) {
  EXPECT_EQ(text_.find('\n'), text_.size() - 1);
}

TEST_F(SummaryJson, HoldsEveryCount) {
  EXPECT_EQ(number("/documents"), 5);
  EXPECT_EQ(number("/tokens"), 111) << "over all keys";
  EXPECT_EQ(number("/lines"), 10);
  EXPECT_EQ(number("/blank_lines"), 2);
  EXPECT_EQ(number("/empty_documents"), 1) << "over all keys";
  EXPECT_EQ(number("/outputs/0/empty_documents"), 1);
  EXPECT_EQ(number("/lone_surrogates"), 4);
  EXPECT_EQ(number("/input_files"), 3);
  EXPECT_EQ(number("/input_bytes"), 2'000'000);
  EXPECT_EQ(number("/read_bytes"), 1'000'000);
  EXPECT_EQ(number("/text_bytes"), 1'000'000'000'000);
  EXPECT_EQ(number("/workers"), 7);
  EXPECT_EQ(number("/peak_rss_bytes"), 12'345'678);
  EXPECT_EQ(real("/seconds"), 0.00001);
  EXPECT_EQ(real("/cpu_seconds"), 1.5);
  EXPECT_EQ(string("/dtype"), "uint16");
}

TEST_F(SummaryJson, NamesTheKindsOfBadRecords) {
  std::int64_t expected = 1;
  for (const char* kind : {"invalid_utf8", "invalid_json", "not_an_object", "missing_key",
                           "wrong_type", "not_encodable"}) {
    EXPECT_EQ(number(std::string("/bad_records/") + kind), expected++);
  }
}

TEST_F(SummaryJson, HoldsEachOutput) {
  EXPECT_EQ(string("/outputs/0/prefix"), "out/we\"b\n_a_document");
  EXPECT_EQ(number("/outputs/0/sequences"), 7);
  EXPECT_EQ(number("/outputs/0/documents"), 5);
  EXPECT_EQ(number("/outputs/0/tokens"), 100);
  EXPECT_EQ(number("/outputs/0/bin_bytes"), 200);
  EXPECT_EQ(number("/outputs/1/tokens"), 11);
}

TEST_F(SummaryJson, TellsHowBusyEachStageWas) {
  EXPECT_EQ(real("/busy_seconds/read"), 0.00000125);
  EXPECT_EQ(real("/busy_seconds/read_spans"), 0.0000015);
  EXPECT_EQ(real("/busy_seconds/encode"), 0.00000175);
  EXPECT_EQ(real("/busy_seconds/write"), 0.0000075);
  EXPECT_EQ(real("/busy_seconds/sync"), 0.000001);
  EXPECT_EQ(string("/slowest_stage"), "write");
}

TEST_F(SummaryJson, HoldsWhatToTrainWith) {
  EXPECT_EQ(string("/data_path/0"), "100");
  EXPECT_EQ(string("/data_path/1"), "out/we\"b\n_a_document");
  EXPECT_EQ(string("/data_path/2"), "11");
  EXPECT_EQ(string("/data_path/3"), "out/b");
}

// A path may contain any bytes. The output must be valid JSON and preserve all of them.
TEST(SummaryJsonOf, EscapesBytesOfAPathThatAreNotUtf8) {
  run_summary s = example_summary();
  s.outputs[1].prefix = "out/b\xFF";
  EXPECT_THAT(to_json(s), HasSubstr("{\"prefix\": \"out/b\\udcff\""));
}

TEST(SummaryJsonOf, NothingIsJsonToo) {
  simdjson::dom::parser parser;
  simdjson::dom::element json;
  EXPECT_EQ(parser.parse(to_json(run_summary{})).get(json), simdjson::SUCCESS);
}

TEST(SummaryText, TellsOfWhatWasFound) {
  const std::string text = describe(example_summary());
  EXPECT_THAT(text, HasSubstr("5 documents, 111 tokens (uint16) from 2.0 MB in 3 files\n"));
  EXPECT_THAT(text, HasSubstr("2 blank lines skipped\n"));
  EXPECT_THAT(text, HasSubstr("1 empty document\n"));
  EXPECT_THAT(text, HasSubstr("4 lone surrogates replaced by U+FFFD\n"));
  EXPECT_THAT(text, HasSubstr("1 bad record dropped: invalid_utf8\n"));
  EXPECT_THAT(text, HasSubstr("6 bad records dropped: not_encodable\n"));
}

TEST(SummaryText, NamesTheSlowestStage) {
  EXPECT_THAT(describe(example_summary()),
              HasSubstr("\nslowest stage: write, busy 75 % of the time\n"));
  EXPECT_THAT(describe(run_summary{}), Not(HasSubstr("slowest")));
}

// The summary ends with the arguments for training. For Megatron, an odd number of arguments means
// prefixes, and an even number means weights and prefixes.
TEST(SummaryText, EndsWithWhatToTrainWith) {
  run_summary s;
  s.outputs = {{.prefix = "out/web_text_document", .tokens = 100}};
  EXPECT_THAT(describe(s), EndsWith("\n--data-path out/web_text_document\n"));
  s.outputs.push_back({.prefix = "out/web_title_document", .tokens = 7});
  EXPECT_THAT(describe(s), EndsWith("\n--data-path 100 out/web_text_document 7 "
                                    "out/web_title_document\n"));
}

// Datasets without tokens are left out, because Megatron fails on them.
TEST(SummaryText, LeavesOutWhatCannotBeTrainedOn) {
  run_summary s;
  s.outputs = {{.prefix = "a", .tokens = 0}, {.prefix = "b", .tokens = 3}};
  EXPECT_THAT(describe(s), EndsWith("\n--data-path b\n"));
  s.outputs.pop_back();
  EXPECT_THAT(describe(s), EndsWith("\nno tokens: the output has nothing to train on\n"));
  EXPECT_THAT(data_path(s), testing::IsEmpty());
}

TEST(SummaryText, QuotesWhatAShellWouldTakeApart) {
  run_summary s;
  s.outputs = {{.prefix = "my data/it's_text_document", .tokens = 1}};
  EXPECT_THAT(describe(s), EndsWith("\n--data-path 'my data/it'\\''s_text_document'\n"));
}

// The summary of a clean run does not mention problems that did not occur.
TEST(SummaryText, DoesNotTellOfWhatWasNotFound) {
  run_summary s;
  s.counts.documents = 5;
  const std::string text = describe(s);
  for (const char* word : {"blank", "empty", "surrogate", "bad", "inf", "nan"}) {
    EXPECT_THAT(text, Not(HasSubstr(word)));
  }
}

TEST(MeasureProcess, FillsInTimeAndMemory) {
  run_summary s;
  measure_process(s);
  EXPECT_GT(s.peak_rss_bytes, 1U << 20) << "this process has more than a MiB";
  EXPECT_GE(s.cpu_seconds, 0);
}

}  // namespace
}  // namespace millrace::preprocess
