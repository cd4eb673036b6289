// SPDX-License-Identifier: Apache-2.0
#include "record/block_encoder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "process/stop_flag.hpp"
#include "record/fim_encoder.hpp"
#include "support/naive_fim.hpp"
#include "support/naive_sample.hpp"
#include "support/paths.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using formats::dtype;
using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

byte_block block_of(std::string_view text) {
  byte_block block;
  block.input = 3;
  block.begin = 1000;
  block.text_bytes = text.size();
  block.end = 1000 + text.size();
  block.read_bytes = 77;
  block.buffer.reserve(text.size() + record_parser::padding_bytes, 0);
  std::memcpy(block.buffer.data(), text.data(), text.size());
  return block;
}

template <class Id = std::uint16_t>
std::vector<std::int64_t> ids(const encoded_column& column) {
  std::vector<Id> out(column.ids_bytes / sizeof(Id));
  if (!out.empty()) std::memcpy(out.data(), column.ids.data(), column.ids_bytes);
  return {out.begin(), out.end()};
}

// Texts spell out their ids, so that expectations are easy to read.
class BlockEncoder : public testing::Test {
 protected:
  encoder_options options() const {
    return {.keys = plain_keys({"text"}), .append_eod = std::nullopt, .dtype = dtype::uint16};
  }
  encoded_block encode(std::string_view text, const encoder_options& options) const {
    block_encoder encoder(*tokenizer_, options);
    encoded_block out;
    encoder.encode(block_of(text), out);
    return out;
  }
  std::int64_t count(const encoded_block& block, fault_kind kind) const {
    return block.counts.bad_records[static_cast<std::size_t>(kind)];
  }

  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::null_tokenizer(1000);
};

TEST_F(BlockEncoder, MakesOneSequenceOfAString) {
  const auto out = encode("{\"text\": \"1 2 3\"}\n{\"text\": \"4\"}\n", options());
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(3, 1));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(1, 2));
  EXPECT_EQ(out.counts.documents, 2);
  EXPECT_EQ(out.counts.lines, 2);
  EXPECT_EQ(out.counts.text_bytes, 6);
}

TEST_F(BlockEncoder, MakesOneDocumentOfAList) {
  const auto out = encode("{\"text\": [\"4 5\", \"6\", \"8 9 10\"]}", options());
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(4, 5, 6, 8, 9, 10));
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(2, 1, 3));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(3));
}

// As in Megatron, the eod id ends the document. It is appended to the last sequence that has
// tokens.
TEST_F(BlockEncoder, AppendsEodToTheLastSequenceThatHasTokens) {
  tokenizer_ = test::byte_tokenizer();
  auto with_eod = options();
  with_eod.append_eod = 0;
  const auto out = encode("{\"text\": [\"ab\", \"c\", \"\"]}\n{\"text\": \"d\"}\n", with_eod);
  EXPECT_THAT(ids(out.columns[0]), ElementsAre('a', 'b', 'c', 0, 'd', 0));
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(2, 2, 2));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(2, 3));
}

TEST_F(BlockEncoder, AppendsNoEodToAnEmptyDocument) {
  tokenizer_ = test::byte_tokenizer();
  auto with_eod = options();
  with_eod.append_eod = 0;
  const auto out = encode("{\"text\": \"\"}\n{\"text\": []}\n{\"text\": [\"\", \"\"]}\n", with_eod);
  EXPECT_THAT(ids(out.columns[0]), IsEmpty());
  EXPECT_THAT(out.columns[0].lengths, IsEmpty());
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(0, 0, 0));
  EXPECT_EQ(out.counts.documents, 3);
}

// A record is refused if a sequence has one token too many. The end-of-document token counts only
// as a token of the sequence that it ends.
TEST_F(BlockEncoder, RefusesOneTokenMoreThanASequenceHolds) {
  auto limited = options();
  limited.most_tokens = 3;
  limited.on_bad_record = bad_record_policy::skip;
  const auto plain = encode("{\"text\": \"1 2 3\"}\n{\"text\": \"1 2 3 4\"}\n", limited);
  EXPECT_THAT(plain.columns[0].lengths, ElementsAre(3));
  ASSERT_EQ(plain.faults.size(), 1U);
  EXPECT_EQ(plain.faults[0].fault.what,
            "text of key \"text\" has 4 tokens, more than the 3 that a sequence can hold");
  limited.append_eod = 9;
  const auto with_eod =
      encode("{\"text\": [\"1 2 3\", \"4 5\"]}\n{\"text\": [\"6\", \"1 2 3\"]}\n", limited);
  EXPECT_THAT(ids(with_eod.columns[0]), ElementsAre(1, 2, 3, 4, 5, 9));
  EXPECT_THAT(with_eod.columns[0].lengths, ElementsAre(3, 3));
  EXPECT_EQ(count(with_eod, fault_kind::not_encodable), 1);
  EXPECT_EQ(with_eod.counts.documents, 1);
}

TEST_F(BlockEncoder, LeavesOutEmptyTextsOfAList) {
  tokenizer_ = test::byte_tokenizer();
  const auto out = encode("{\"text\": [\"\", \"1\", \"\", \"2\"]}", options());
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(1, 1));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(2));
}

TEST_F(BlockEncoder, SkipsAndCountsBlankLines) {
  const auto out = encode("\n  \r\n\t\r{\"text\": \"1\"}\n\n", options());
  EXPECT_EQ(out.counts.lines, 5);
  EXPECT_EQ(out.counts.blank_lines, 4);
  EXPECT_EQ(out.counts.documents, 1);
  EXPECT_EQ(out.counts.bad_record_total(), 0);
}

// A line of space characters is a bad record if JSON does not treat these characters as white
// space.
TEST_F(BlockEncoder, TakesALineOfOtherSpacesForABadRecord) {
  for (const std::string_view line : {"\v"sv, "\f"sv, "\xC2\xA0"sv, "\0"sv}) {
    const auto out = encode(line, options());
    EXPECT_EQ(out.counts.blank_lines, 0) << testing::PrintToString(line);
    EXPECT_EQ(out.counts.bad_record_total(), 1) << testing::PrintToString(line);
  }
}

// Records that are left out are not parsed, so bad ones among them are not found. The place of a
// record counts from the start of the input.
// Each key of a record begins with the same draws. The end-of-document token comes last, as always.
TEST_F(BlockEncoder, PermutesTheTextsOfARecord) {
  const auto bytes = test::byte_tokenizer();
  std::vector<input_file> inputs(4);
  inputs[3].path = "in.jsonl";
  const fim_options fim{.rate = 0.7,
                        .split_token = "|",
                        .fragment_rate = 0.5,
                        .prefix_token = "P",
                        .middle_token = "M",
                        .suffix_token = "S"};
  encoder_options permuting = options();
  permuting.keys = plain_keys({"text", "title"});
  permuting.append_eod = '!';
  permuting.fim = std::make_shared<fim_plan>(fim, *bytes, inputs);
  permuting.on_bad_record = bad_record_policy::skip;
  permuting.giant_bytes = 70;
  block_encoder encoder(*bytes, permuting);
  std::string text;
  std::string wanted;
  std::int64_t split_tokens = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string value = "ab|c" + std::to_string(i);
    test::naive_fim naive(fim, "in.jsonl", 1000 + text.size());
    const std::string permuted = naive.permuted(value);
    if (permuted != value) ++split_tokens;  // else only perhaps
    wanted += permuted + naive.permuted("xyz") + "!";
    text +=
        "{\"text\": [\"" + value + "\", \"\", \"xyz\"], \"title\": [\"" + value + "\", \"xyz\"]}\n";
    if (i % 10 == 0) text += "{\"text\": \"\", \"title\": \"" + std::string(60, 'x') + "\"}\n";
  }
  encoded_block out;
  encoder.encode(block_of(text), out);
  for (const encoded_column& column : out.columns) {
    std::string found;
    for (const std::int64_t id : ids(column)) found += static_cast<char>(id);
    EXPECT_EQ(found, wanted);
    EXPECT_EQ(column.lengths.size(), 600U);
  }
  EXPECT_GE(out.counts.special_tokens, 2 * split_tokens);
  ASSERT_EQ(out.faults.size(), 30U);
  EXPECT_EQ(out.faults[7].fault.what,
            "the record has 85 bytes of JSON, expected less than 70 with --fim-rate");
}

TEST_F(BlockEncoder, LeavesOutTheRecordsThatASampleDoesNotTake) {
  std::vector<input_file> inputs(4);
  inputs[3].path = "in.jsonl";
  auto sampled = options();
  sampled.sampler = std::make_shared<record_sampler>(sample_options{.rate = 0.5}, inputs);
  sampled.on_bad_record = bad_record_policy::skip;
  std::string text;
  std::vector<std::int64_t> wanted;
  std::int64_t left_out = 0;
  std::int64_t bad = 0;
  for (int i = 0; i < 200; ++i) {
    const bool taken = test::sample_number(0, "in.jsonl", 1000 + text.size()) < (1ULL << 52);
    left_out += taken ? 0 : 1;
    if (i % 5 == 0) {
      text += "bad\n\n";
      bad += taken ? 1 : 0;
    } else {
      text += "{\"text\": \"" + std::to_string(i) + "\"}\r\n";
      if (taken) wanted.push_back(i);
    }
  }
  const auto out = encode(text, sampled);
  EXPECT_EQ(ids(out.columns[0]), wanted);
  EXPECT_EQ(out.counts.not_sampled, left_out);
  EXPECT_EQ(out.counts.bad_record_total(), bad);
  EXPECT_EQ(std::ssize(out.faults), bad);
  EXPECT_EQ(out.counts.blank_lines, 40);
  EXPECT_EQ(out.counts.lines, 240);
  EXPECT_GT(left_out, 60);
  EXPECT_GT(bad, 5);
}

TEST_F(BlockEncoder, PutsEachKeyIntoItsOwnColumn) {
  auto two = options();
  two.keys = plain_keys({"a", "b"});
  const auto out =
      encode("{\"a\": \"1\", \"b\": [\"2 3\", \"4\"]}\n{\"b\": [], \"a\": \"5\"}\n", two);
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(1, 5));
  EXPECT_THAT(ids(out.columns[1]), ElementsAre(2, 3, 4));
  EXPECT_THAT(out.columns[1].document_ends, ElementsAre(2, 2));
  EXPECT_EQ(out.counts.documents, 2);
}

// Documents of different keys correspond by their index, so a record must be dropped under all
// keys.
TEST_F(BlockEncoder, DropsARecordUnderAllKeysIfOneIsBad) {
  auto two = options();
  two.keys = plain_keys({"a", "b"});
  two.append_eod = 999;
  two.on_bad_record = bad_record_policy::skip;
  const std::string good = "{\"a\": [\"1\", \"2 3\"], \"b\": \"4 5\"}\n";
  for (const std::string bad :
       {"{\"a\": [\"6\", \"7\"], \"b\": \"no ids\"}\n", "{\"a\": \"no ids\", \"b\": \"8\"}\n",
        "{\"a\": [\"6\", \"no ids\"], \"b\": \"8\"}\n", "{\"a\": \"6\", \"b\": [\"8\", \"no\"]}\n",
        "{\"a\": \"6\"}\n", "{\"a\": \"6\", \"b\": 7}\n", "{\"a\": \"6\", \"b\": \"7\"\n"}) {
    SCOPED_TRACE(bad);
    const auto out = encode(bad + good + bad + bad + good, two);
    EXPECT_THAT(ids(out.columns[0]), ElementsAre(1, 2, 3, 999, 1, 2, 3, 999));
    EXPECT_THAT(out.columns[0].lengths, ElementsAre(1, 3, 1, 3));
    EXPECT_THAT(out.columns[0].document_ends, ElementsAre(2, 4));
    EXPECT_THAT(ids(out.columns[1]), ElementsAre(4, 5, 999, 4, 5, 999));
    EXPECT_THAT(out.columns[1].document_ends, ElementsAre(1, 2));
    EXPECT_EQ(out.counts.documents, 2);
    EXPECT_EQ(out.counts.text_bytes, 14) << "of documents only";
    EXPECT_EQ(out.counts.lines, 5);
    EXPECT_EQ(out.counts.bad_record_total(), 3);
  }
}

TEST_F(BlockEncoder, StopsAtTheFirstBadRecordUnderFail) {
  const auto out = encode("{\"text\": \"1\"}\n\nbad\n{\"text\": \"2\"}\nworse\n", options());
  ASSERT_EQ(out.faults.size(), 1U);
  EXPECT_EQ(out.faults[0].place.line, 2);
  EXPECT_EQ(out.counts.bad_record_total(), 1);
}

TEST_F(BlockEncoder, CountsBadRecordsByKind) {
  auto skip = options();
  skip.on_bad_record = bad_record_policy::skip;
  const auto out = encode(
      "{\"text\": \"\xFF\"}\n"  // invalid UTF-8
      "{\"text\": \"1\"\n"
      "[1]\n"
      "{}\n"
      "{\"text\": 7}\n"
      "{\"text\": \"no ids\"}\n"
      "{\"text\": \"5\"}\n",
      skip);
  for (const fault_kind kind :
       {fault_kind::invalid_utf8, fault_kind::invalid_json, fault_kind::not_an_object,
        fault_kind::missing_key, fault_kind::wrong_type, fault_kind::not_encodable}) {
    EXPECT_EQ(count(out, kind), 1) << static_cast<int>(kind);
  }
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(5));
}

TEST_F(BlockEncoder, TellsThePlaceOfAFaultInTheBlock) {
  auto skip = options();
  skip.on_bad_record = bad_record_policy::skip;
  const std::string first = "{\"text\": \"1\"}\r\n";
  const auto out = encode(first + "\n" + "[]\n" + first + "{\"text\": \"no ids\"}\n", skip);
  ASSERT_EQ(out.faults.size(), 2U);
  EXPECT_EQ(out.faults[0].place.line, 2);
  EXPECT_EQ(out.faults[0].place.begin, first.size() + 1);
  EXPECT_EQ(out.faults[1].place.line, 4);
  EXPECT_EQ(out.faults[1].place.begin, 2 * first.size() + 4);
  EXPECT_THAT(out.faults[1].fault.what, HasSubstr("key \"text\""));
}

// The bytes of bad records are kept only under quarantine.
TEST_F(BlockEncoder, KeepsBadRecordsUnderQuarantine) {
  for (const auto policy : {bad_record_policy::skip, bad_record_policy::quarantine}) {
    auto dropping = options();
    dropping.on_bad_record = policy;
    const auto out = encode("{\"text\": \"1\"}\nbad one\r\n\nbad two\n", dropping);
    ASSERT_EQ(out.faults.size(), 2U);
    EXPECT_EQ(out.faults[1].place.line, 3);
    EXPECT_EQ(out.faults[1].place.begin, 24U);
    EXPECT_EQ(out.faults[1].place.size, 7U);
    const bool kept = policy == bad_record_policy::quarantine;
    EXPECT_EQ(out.faults[0].raw, kept ? "bad one" : "");
    EXPECT_EQ(out.faults[1].raw, kept ? "bad two" : "");
  }
}

// The encoder reports the place of each document. Bad and blank lines count as lines but make no
// documents.
TEST_F(BlockEncoder, TellsWhereEachDocumentLies) {
  auto skip = options();
  skip.on_bad_record = bad_record_policy::skip;
  const std::string text = "\n{\"text\": \"1\"}\r\nbad\n{\"text\": \"2 3\"}";
  const auto out = encode(text, skip);
  ASSERT_EQ(out.places.size(), 2U);
  EXPECT_EQ(out.places[0].line, 1U);
  EXPECT_EQ(text.substr(out.places[0].begin, out.places[0].size), "{\"text\": \"1\"}");
  EXPECT_EQ(out.places[1].line, 3U);
  EXPECT_EQ(text.substr(out.places[1].begin, out.places[1].size), "{\"text\": \"2 3\"}");
  EXPECT_EQ(out.crc32c, formats::crc32c(std::as_bytes(std::span(text))));
}

TEST_F(BlockEncoder, WritesInt32WhereTheVocabularyNeedsIt) {
  tokenizer_ = test::null_tokenizer(2'000'000'000);
  auto wide = options();
  wide.dtype = dtype::int32;
  wide.append_eod = 1'999'999'999;
  const auto out = encode("{\"text\": \"70000 1\"}\n", wide);
  EXPECT_THAT(ids<std::int32_t>(out.columns[0]), ElementsAre(70000, 1, 1'999'999'999));
  EXPECT_EQ(out.columns[0].ids_bytes, 12U);
}

// Encoding a block overwrites all results of the previous block. The pipeline reuses buffers, so no
// earlier result may remain.
TEST_F(BlockEncoder, OverwritesWhatTheLastBlockLeft) {
  auto skip = options();
  skip.on_bad_record = bad_record_policy::skip;
  block_encoder encoder(*tokenizer_, skip);
  encoded_block out;
  encoder.encode(block_of("bad\n{\"text\": [\"1 2 3\", \"4\"]}\n\n"), out);
  encoder.encode(block_of("{\"text\": \"9\"}\n"), out);
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(9));
  EXPECT_THAT(out.columns[0].lengths, ElementsAre(1));
  EXPECT_THAT(out.columns[0].document_ends, ElementsAre(1));
  EXPECT_THAT(out.faults, IsEmpty());
  EXPECT_EQ(out.counts.lines, 1);
  EXPECT_EQ(out.counts.blank_lines, 0);
  EXPECT_EQ(out.counts.bad_record_total(), 0);
}

TEST_F(BlockEncoder, CarriesThePlaceOfTheBlock) {
  const auto out = encode("\n", options());
  EXPECT_EQ(out.input, 3U);
  EXPECT_EQ(out.text_offset, 1000U);
  EXPECT_EQ(out.begin, 1000U);
  EXPECT_EQ(out.end - out.begin, 1U);
  EXPECT_EQ(out.read_bytes, 77U);
}

class BlockEncoderWithNormalizer : public BlockEncoder {
 protected:
  void SetUp() override {
    const test::temp_folder folder;
    test::write_text(folder / "tokenizer.json",
                     R"({"normalizer":{"type":"Sequence","normalizers":[)" + doubling(29) +
                         R"(]},"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{)"
                         R"("type":"WordLevel","unk_token":"?","vocab":{"?":0,"b":1}}})");
    tokenizer::tokenizer_options wanted;
    wanted.type = "HuggingFaceTokenizer";
    wanted.model = folder / "tokenizer.json";
    tokenizer_ = tokenizer::make_tokenizer(wanted);
  }
  static std::string doubling(int more) {
    const std::string one = R"({"type":"Replace","pattern":{"String":"a"},"content":"aa"})";
    return more == 0 ? one : one + "," + doubling(more - 1);
  }
};

TEST_F(BlockEncoderWithNormalizer, TakesATextThatGrowsTooFarForABadRecord) {
  auto skipping = options();
  skipping.on_bad_record = bad_record_policy::skip;
  const auto out = encode("{\"text\": \"a\"}\n{\"text\": \"b\"}\n", skipping);
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(1));
  ASSERT_EQ(count(out, fault_kind::not_encodable), 1);
  EXPECT_THAT(out.faults.at(0).fault.what,
              testing::AllOf(HasSubstr("text of key \"text\" cannot be encoded"),
                             HasSubstr("Replace 'a' makes more than")));
}

TEST_F(BlockEncoderWithNormalizer, GivesABlockUpWhenTheRunIsToStop) {
  std::atomic<int> stop = 0;
  auto stoppable = options();
  stoppable.stop = &stop;
  EXPECT_THAT(ids(encode("{\"text\": \"b\"}\n", stoppable).columns[0]), ElementsAre(1));
  stop = 15;
  EXPECT_THROW((void)encode("{\"text\": \"b\"}\n", stoppable), line_abandoned);
}

TEST_F(BlockEncoder, CountsLoneSurrogatesOfDocumentsOnly) {
  tokenizer_ = test::byte_tokenizer();
  auto two = options();
  two.keys = plain_keys({"a", "b"});
  two.on_bad_record = bad_record_policy::skip;
  const auto out = encode(
      "{\"a\": \"\\ud800\", \"b\": \"x\\udfff\\ud83d\\ude00\", \"c\": \"\\ud800\"}\n"
      "{\"a\": \"\\ud800\"}\n",
      two);
  EXPECT_EQ(out.counts.lone_surrogates, 2);
  EXPECT_THAT(ids(out.columns[0]), ElementsAre(0xEF, 0xBF, 0xBD));
}

}  // namespace
}  // namespace millrace::preprocess
