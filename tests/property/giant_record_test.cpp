// SPDX-License-Identifier: Apache-2.0
#include "record/giant_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tbb/enumerable_thread_specific.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "process/stop_flag.hpp"
#include "record/block_encoder.hpp"
#include "record/sentence_splitter.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;

/// The ids and sequence lengths that one key of a record gives.
struct column {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> lengths;

  bool operator==(const column&) const = default;
};

// GoogleTest finds this function by its name.
void PrintTo(const column& which, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << testing::PrintToString(which.ids) << " in " << testing::PrintToString(which.lengths);
}

class kept_columns final : public id_sink {
 public:
  explicit kept_columns(std::size_t keys) : columns(keys) {}

  void append(std::size_t key, std::span<const std::int32_t> ids) override {
    columns[key].ids.insert(columns[key].ids.end(), ids.begin(), ids.end());
  }
  void end_sequence(std::size_t key, std::int32_t length) override {
    columns[key].lengths.push_back(length);
  }
  void take_digest(const text_digest& digest) override { digests.push_back(digest); }

  std::vector<column> columns;
  std::vector<text_digest> digests;
};

struct outcome {
  std::optional<record_fault> fault;
  std::vector<column> columns;       // empty if there is a fault
  std::vector<text_digest> digests;  // as well; none if there are several keys
  record_counts counts;
};

/// A file that contains `line` among other lines.
class file_of_line {
 public:
  explicit file_of_line(std::string_view line) {
    test::write_text(folder_ / "lines", before_ + std::string(line) + "\n{\"text\": 1}\n");
    fd_ = io::open_read_only(folder_ / "lines");
    size_ = line.size();
  }
  line_range range() const {
    return {fd_, folder_ / "lines", before_.size(), before_.size() + size_};
  }

 private:
  const std::string before_ = "\xFF\"}\n";
  test::temp_folder folder_{test::quick_folder()};
  io::unique_fd fd_;
  std::size_t size_ = 0;
};

/// Encodes lines both as giant lines and as normal lines. Keeps its encoders, because they are slow
/// to create.
class both_ways {
 public:
  /// @param eod          token to append to each document, if any
  /// @param most_tokens  maximum number of tokens in a sequence
  both_ways(const tokenizer::tokenizer& tokenizer, std::vector<std::string> keys,
            std::optional<std::int32_t> eod, std::int64_t most_tokens = most_sequence_tokens,
            std::optional<sentence_options> sentences = std::nullopt)
      : tokenizer_(tokenizer),
        keys_(std::move(keys)),
        eod_(eod),
        most_tokens_(most_tokens),
        sentences_(std::move(sentences)),
        in_block_(tokenizer, {.keys = plain_keys(keys_),
                              .append_eod = eod,
                              .dtype = formats::dtype::int32,
                              .on_bad_record = bad_record_policy::skip,
                              .sentences = sentences_,
                              .digests = keys_.size() == 1,
                              .most_tokens = most_tokens}),
        encoders_([&tokenizer] { return tokenizer.make_encoder(); }) {}

  giant_options options(int workers) const {
    return {.keys = plain_keys(keys_),
            .append_eod = eod_,
            .sentences = sentences_,
            .digests = keys_.size() == 1,
            .workers = workers,
            .most_tokens = most_tokens_};
  }

  outcome giant(const std::string& line, const giant_options& options) {
    const file_of_line file(line);
    kept_columns sink(keys_.size());
    outcome out;
    tbb::task_arena(options.workers).execute([&] {
      out.fault = encode_giant_record(
          file.range(), options, tokenizer_,
          [&]() -> tokenizer::encoder& { return *encoders_.local(); }, sink, out.counts);
    });
    if (!out.fault) {
      out.columns = sink.columns;
      out.digests = sink.digests;
      EXPECT_EQ(out.digests.size(), keys_.size() == 1 ? 1U : 0U);
    }
    return out;
  }

  outcome usual(std::string_view line) {
    byte_block block;
    block.text_bytes = line.size();
    block.buffer.reserve(line.size() + record_parser::padding_bytes, 0);
    std::memcpy(block.buffer.data(), line.data(), line.size());
    encoded_block encoded;
    in_block_.encode(block, encoded);
    outcome out;
    out.counts = encoded.counts;
    if (!encoded.faults.empty()) {
      out.fault = encoded.faults.front().fault;
      return out;
    }
    out.digests = encoded.digests;
    for (const encoded_column& each : encoded.columns) {
      column& to = out.columns.emplace_back();
      to.ids.resize(each.ids_bytes / sizeof(std::int32_t));
      if (!to.ids.empty()) std::memcpy(to.ids.data(), each.ids.data(), each.ids_bytes);
      to.lengths = each.lengths;
    }
    return out;
  }

 private:
  const tokenizer::tokenizer& tokenizer_;
  std::vector<std::string> keys_;
  std::optional<std::int32_t> eod_;
  std::int64_t most_tokens_;
  std::optional<sentence_options> sentences_;
  block_encoder in_block_;
  tbb::enumerable_thread_specific<std::unique_ptr<tokenizer::encoder>> encoders_;
};

void expect_same(const outcome& giant, const outcome& usual, const std::string& line) {
  SCOPED_TRACE(testing::PrintToString(line));
  ASSERT_EQ(giant.fault.has_value(), usual.fault.has_value());
  if (usual.fault) {
    EXPECT_EQ(giant.fault->kind, usual.fault->kind);
    EXPECT_EQ(giant.fault->offset_bytes, usual.fault->offset_bytes);
    EXPECT_EQ(giant.fault->what, usual.fault->what);
  }
  EXPECT_EQ(giant.columns, usual.columns);
  EXPECT_EQ(giant.digests, usual.digests);
  EXPECT_EQ(giant.counts.documents, usual.counts.documents);
  EXPECT_EQ(giant.counts.lone_surrogates, usual.counts.lone_surrogates);
  EXPECT_EQ(giant.counts.special_tokens, usual.counts.special_tokens);
  EXPECT_EQ(giant.counts.text_bytes, usual.counts.text_bytes);
  EXPECT_EQ(giant.counts.bad_records, usual.counts.bad_records);
}

class random_lines {
 public:
  random_lines(std::uint64_t seed, std::vector<std::string> words)
      : random_(seed), words_(std::move(words)) {}

  std::string next() {
    std::string line = pick({"{", " {", "{ "}) + "\"id\": [1, {\"text\": \"x\"}], ";
    line += pick({"\"text\"", "\"t\\u0065xt\"", "\"tex\\u0074\" "}) + ":" + value() + ", ";
    if (random_() % 6 == 0) line += "\"text\": " + value() + ",";
    line += "\"title\": " + value() + pick({"}", " }", "\t}\r"});
    if (random_() % 8 == 0) line[random_() % line.size()] = pick({"x", "\"", "\\", "\xC3", ","})[0];
    return line;
  }

 private:
  std::string pick(const std::vector<std::string>& from) { return from[random_() % from.size()]; }

  std::string text() {
    std::string out = "\"";
    for (std::size_t n = random_() % 3 == 0 ? 0 : random_() % 80; n > 0; --n) out += pick(words_);
    return out + '"';
  }

  std::string value() {
    if (random_() % 30 == 0) return pick({"7", "null", "{}", "[[]]", "[\"a\", 1]"});
    if (random_() % 3 != 0) return text();
    std::string list = "[";
    for (std::size_t n = random_() % 6; n > 0; --n)
      list += text() + (n > 1 ? pick({",", " , "}) : "");
    return list + "]";
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

void compare(const tokenizer::tokenizer& tokenizer, std::vector<std::string> words, int lines,
             int least_good) {
  random_lines random(test::seed(7), std::move(words));
  both_ways plain(tokenizer, {"text", "title"}, std::nullopt);
  both_ways with_eod(tokenizer, {"text", "title"}, 5);
  both_ways one_key(tokenizer, {"text"}, 5);
  int good = 0;
  for (int i = 0; i < lines; ++i) {
    std::string line = random.next();
    if (line.ends_with('\r')) line.pop_back();  // '\r' would be part of the line end
    both_ways& ways = i % 3 == 0 ? plain : i % 3 == 1 ? with_eod : one_key;
    giant_options options = ways.options(1 + i % 2);
    options.window_bytes = 16 + static_cast<std::size_t>(i) % 40;
    options.chunk_bytes = 1 + static_cast<std::size_t>(i) % 70;
    const outcome usual = ways.usual(line);
    good += usual.fault ? 0 : 1;
    expect_same(ways.giant(line, options), usual, line);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(good, least_good);
}

TEST(GiantRecord, GivesWhatABlockGives) {
  compare(
      *test::byte_tokenizer(),
      {"a", "word ", "\\n", "\\u00e9", "\xC3\xA9", "\\ud83d\\ude00", "\\ud800", "\xF0\x9F\x98\x80"},
      700, 300);
}

TEST(GiantRecord, GivesWhatABlockGivesByByteLevelBpe) {
  compare(*test::tiny_bpe_tokenizer(),
          {"the", " ", "word ", "\\n", "'s ", "1", "\xC3\xA9", "\\t\\\"", "<|endoftext|>", " ab",
           "\xE4\xB8\xAD", "\xE3\x80\x82"},
          700, 300);
}

TEST(GiantRecord, GivesTheFaultsOfTokenizersThatABlockGives) {
  compare(*test::null_tokenizer(1000), {"1 ", "22 ", "333 ", "4 ", "5 6 7 "}, 200, 0);
  compare(*test::null_tokenizer(1000), {"1 ", "22", " 333"}, 400, 0);
}

TEST(GiantRecord, GivesIdsThatTextsSpellOut) {
  const auto tokenizer = test::null_tokenizer(1000);
  both_ways ways(*tokenizer, {"text"}, 9);
  giant_options options = ways.options(2);
  options.chunk_bytes = 3;
  const std::string line = R"({"text": "1 22 333 4 5 66 7 999 0"})";
  expect_same(ways.giant(line, options), ways.usual(line), line);
}

TEST(GiantRecord, GivesWhatABlockGivesWherePartsHaveAnOrder) {
  tokenizer::tokenizer_options options;
  options.type = "SentencePieceTokenizer";
  options.model = test::golden("tiny_sentencepiece/unigram.model");
  compare(*tokenizer::make_tokenizer(options),
          {"the ", " of", "word ", "\\n", "\xC3\xA9", "1", "  ", "\xE4\xB8\xAD", "a"}, 300, 100);
}

TEST(GiantRecord, HasAsManyTextsAsItLikes) {
  std::string line = "{\"text\":[";
  for (int i = 0; i < 200'000; ++i) line += i % 3 == 0 ? "\"\"," : "\"7\",";
  line += "\"1 2\"]}";
  const auto tokenizer = test::byte_tokenizer();
  both_ways ways(*tokenizer, {"text"}, 9);
  expect_same(ways.giant(line, ways.options(2)), ways.usual(line), "many texts");
}

TEST(GiantRecord, CutsATextIntoChunksOfTheUsualSize) {
  std::string line = "{\"text\":\"";
  for (int i = 0; i < 400'000; ++i) line += "some words, ";
  line += "\"}";
  const auto tokenizer = test::tiny_bpe_tokenizer();
  both_ways ways(*tokenizer, {"text"}, std::nullopt);
  expect_same(ways.giant(line, ways.options(2)), ways.usual(line), "long text");
}

// Tests sequences with and without an end-of-document token. The token counts toward the length of
// the sequence that it ends.
TEST(GiantRecord, SequencesHaveTheLimitThatABlockHas) {
  const auto tokenizer = test::byte_tokenizer();
  const auto expect_lengths = [&](both_ways& ways, const std::string& line,
                                  const std::vector<std::int32_t>& lengths) {
    giant_options options = ways.options(1);
    options.chunk_bytes = 2;
    const auto giant = ways.giant(line, options);
    expect_same(giant, ways.usual(line), line);
    ASSERT_FALSE(giant.fault) << giant.fault->what;
    EXPECT_EQ(giant.columns[0].lengths, lengths);
  };
  const auto expect_refusal = [&](both_ways& ways, const std::string& line, int tokens) {
    giant_options options = ways.options(1);
    options.chunk_bytes = 2;
    const auto giant = ways.giant(line, options);
    expect_same(giant, ways.usual(line), line);
    ASSERT_TRUE(giant.fault);
    EXPECT_EQ(giant.fault->kind, fault_kind::not_encodable);
    EXPECT_EQ(giant.fault->what, "text of key \"text\" has " + std::to_string(tokens) +
                                     " tokens, more than the 5 that a sequence can hold");
    EXPECT_EQ(giant.counts.bad_record_total(), 1);
    EXPECT_EQ(giant.counts.text_bytes, 0);
  };
  both_ways plain(*tokenizer, {"text"}, std::nullopt, 5);
  expect_lengths(plain, R"({"text":["abcde","xyz","12345"]})", {5, 3, 5});
  expect_refusal(plain, R"({"text":["abcde","123456"]})", 6);
  expect_refusal(plain, R"({"text":["123456789","abcde"]})", 9);
  both_ways with_eod(*tokenizer, {"text"}, 9, 5);
  expect_lengths(with_eod, R"({"text":["abcde","xyz","1234"]})", {5, 3, 5});
  expect_lengths(with_eod, R"({"text":["abcd","xyz",""]})", {4, 4});
  expect_refusal(with_eod, R"({"text":["abcd","12345"]})", 6);
  expect_refusal(with_eod, R"({"text":["abcde",""]})", 6);
  expect_refusal(with_eod, R"({"text":["123456","abcd"]})", 6);
}

TEST(GiantRecord, SequencesHoldWhatTheIndexCanTell) {
  EXPECT_EQ(most_sequence_tokens, (std::int64_t{1} << 31) - 1);
  EXPECT_EQ(giant_options().most_tokens, most_sequence_tokens);
  EXPECT_EQ(encoder_options().most_tokens, most_sequence_tokens);
}

TEST(GiantRecord, SaysThatTheFileHasBecomeShorter) {
  const file_of_line file(R"({"text":"abc"})");
  const line_range range = file.range();
  ASSERT_EQ(::truncate(range.path.c_str(), 8), 0);
  kept_columns sink(1);
  record_counts counts;
  const auto tokenizer = test::byte_tokenizer();
  const auto encoder = tokenizer->make_encoder();
  try {
    encode_giant_record(
        range, {.keys = plain_keys({"text"}), .append_eod = {}}, *tokenizer,
        [&]() -> tokenizer::encoder& { return *encoder; }, sink, counts);
    FAIL() << "no error";
  } catch (const io_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the file has become shorter"));
  }
}

// A giant text is never in memory as a whole, but must be split into the same sentences as a normal
// text. The chunks have one byte or more. The texts have all kinds of stops and abbreviations, with
// white space and line ends around them.
TEST(GiantRecord, HasTheSentencesOfTheWholeText) {
  if (icu_version().empty()) GTEST_SKIP() << "this build has no ICU";
  const auto tokenizer = test::byte_tokenizer();
  std::mt19937_64 random(test::seed(19));
  for (const char* language : {"english", "greek"}) {
    for (const bool keep_newlines : {false, true}) {
      const sentence_options sentences{language, keep_newlines};
      both_ways two_keys(*tokenizer, {"text", "title"}, 7, most_sequence_tokens, sentences);
      both_ways one_key(*tokenizer, {"text"}, 7, most_sequence_tokens, sentences);
      random_lines lines(random(),
                         {"Mr. ",   "e.g. ", "word ",  "Word ",     ". ",      "? ",       "! ",
                          "...",    ".",     "\\n",    "\\r\\n",    "\\n\\n",  " ",        "   ",
                          "12 ",    "3.4 ",  "\u3002", "\u3002\\n", "\\u2029", ".\u201D ", ".) ",
                          "\u0301", "; ",    "U.S. ",  "lower. ",   "\\u00e9", "\\ud800",  "A. "});
      for (int i = 0; i < 300; ++i) {
        std::string line = lines.next();
        if (line.ends_with('\r')) line.pop_back();  // '\r' would be part of the line end
        both_ways& both = i % 2 == 0 ? two_keys : one_key;
        giant_options options = both.options(1 + i % 3);
        options.window_bytes = 16 + random() % 60;
        options.chunk_bytes = 1 + random() % 200;
        expect_same(both.giant(line, options), both.usual(line), line);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

/// Requests a stop when the first ids arrive.
class stopping_sink final : public id_sink {
 public:
  explicit stopping_sink(std::atomic<int>& stop) : stop_(stop) {}
  void append(std::size_t, std::span<const std::int32_t> more) override {
    ids += more.size();
    stop_ = 15;
  }
  void end_sequence(std::size_t, std::int32_t) override {}
  std::size_t ids = 0;

 private:
  std::atomic<int>& stop_;
};

// Encoding a line of several gigabytes takes long. If the run is stopped meanwhile, the encoder
// must soon abandon the line.
TEST(GiantRecord, IsGivenUpWhenTheRunIsToStop) {
  const file_of_line file(R"({"text":")" + std::string(std::size_t{8} << 20, 'a') + "\"}");
  const auto tokenizer = test::byte_tokenizer();
  const giant_options options{.keys = plain_keys({"text"}),
                              .append_eod = {},
                              .workers = 2,
                              .window_bytes = 4096,
                              .chunk_bytes = 4096};
  tbb::enumerable_thread_specific<std::unique_ptr<tokenizer::encoder>> encoders(
      [&] { return tokenizer->make_encoder(); });
  for (const bool at_once : {true, false}) {
    std::atomic<int> stop = at_once ? 15 : 0;
    stopping_sink sink(stop);
    record_counts counts;
    line_range range = file.range();
    range.stop = &stop;
    const auto encode = [&] {
      tbb::task_arena(options.workers).execute([&] {
        (void)encode_giant_record(
            range, options, *tokenizer, [&]() -> tokenizer::encoder& { return *encoders.local(); },
            sink, counts);
      });
    };
    EXPECT_THROW(encode(), line_abandoned);
    // After the stop, only the ids of chunks that were already in flight arrive. A chunk can be
    // larger than `chunk_bytes` by one window.
    EXPECT_LE(sink.ids, at_once ? 0 : (2 + 2 + 1) * std::size_t{8192});
  }
}

}  // namespace
}  // namespace millrace::preprocess
