// SPDX-License-Identifier: Apache-2.0
#include "output/text_digests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/src.hpp>

#include "record/record_parser.hpp"
#include "record/sentence_splitter.hpp"
#include "run/pipeline.hpp"
#include "support/compressed.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_fim.hpp"
#include "support/parquet_table.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests that a task with `--drop-duplicates text` writes the digest of the texts of each record
// that P.src names.

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

std::string text_of_words(generator& random) {
  static const std::vector<std::string> words = {
      "a", "word. ", "Bee! ", "\\n", "\\\"", "\xC3\xA9", "\\u00e9", "\\ud83d\\ude00", "\\ud800"};
  std::string text = "\"";
  for (std::size_t n = random() % 3 == 0 ? 0 : random() % 30; n > 0; --n) {
    text += words[random() % words.size()];
  }
  return text + '"';
}

std::string text_or_list(generator& random) {
  if (random() % 2 == 0) return text_of_words(random);
  std::string list = "[";
  for (std::size_t n = random() % 5; n > 0; --n)
    list += text_of_words(random) + (n > 1 ? ", " : "");
  return list + "]";
}

std::string lines_of_records(generator& random, bool bad) {
  static const std::vector<std::string> ends = {"\n", "\n", "\r\n", "\r"};
  std::string lines = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  for (std::size_t n = random() % 5 == 0 ? 0 : random() % 150; n > 0; --n) {
    switch (random() % 9) {
      case 0:
        lines += random() % 2 == 0 ? "" : " \t";
        break;
      case 1:
        lines += !bad ? R"({"text": ""})" : random() % 2 == 0 ? "no JSON" : R"({"text": ["a", 1]})";
        break;
      case 2:
        lines += R"({"text": "first", "text": )" + text_or_list(random) + "}";
        break;
      default:
        lines += R"({"text": )" + text_or_list(random) + "}";
    }
    if (n > 1 || random() % 2 == 0) lines += ends[random() % ends.size()];
  }
  return lines;
}

// The digest of the texts of a record, all of which are first joined in memory.
text_digest naive_digest(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += text;
    std::uint64_t size = text.size();
    for (int i = 0; i < 8; ++i, size /= 256) all += static_cast<char>(size % 256);
  }
  formats::sha256 hash(formats::sha256::instructions::never);
  return std::bit_cast<text_digest>(hash.update(all).finish());
}

std::vector<std::string> texts_of_record(std::string_view record) {
  const std::string padded = std::string(record) + std::string(record_parser::padding_bytes, '?');
  record_parser parser(plain_keys({"text"}));
  EXPECT_FALSE(parser.parse(std::string_view(padded).substr(0, record.size()))) << record;
  const auto texts = parser.texts(0);
  return {texts.begin(), texts.end()};
}

class TextDigestsOfRuns : public testing::Test {
 protected:
  fs::path file(const std::string& suffix) const {
    return folder_ / ((options_.sentences ? "out_text_sentence" : "out_text_document") + suffix);
  }

  void make_run(int round) {
    options_ = {};
    options_.output_prefix = folder_ / "out";
    options_.drop_duplicates = duplicates_by::text;
    options_.append_eod = random_() % 2 == 0;
    options_.limits.spool_folder = folder_.path();
    const bool bad = random_() % 2 == 0;
    if (bad) options_.on_bad_record = bad_record_policy::skip;
    if (random_() % 2 == 0) options_.limits.giant_bytes = 20 + random_() % 150;
    if (random_() % 3 == 0) options_.sample = {.rate = 0.7, .seed = random_()};
    if (random_() % 4 == 0) options_.most_tokens = static_cast<std::int64_t>(random_() % 4000);
    if (round % 3 == 1) {
      options_.fim = test::random_fim(random_);
      options_.on_bad_record = bad_record_policy::quarantine;  // records may be too large
    }
    if (round % 3 == 2 && !icu_version().empty()) {
      options_.sentences = sentence_options{.keep_newlines = random_() % 2 == 0};
    }
    std::vector<std::string> paths;
    texts_.clear();
    rows_.clear();
    for (std::size_t n = 1 + random_() % 4; n > 0; --n) {
      paths.push_back((folder_ / ("in" + std::to_string(n))).string());
      rows_.emplace_back();
      texts_.push_back(lines_of_records(random_, bad));
      switch (random_() % 4) {
        case 0:
          test::write_text(paths.back(), test::gzip(texts_.back()));
          break;
        case 1:
          rows_.back() = test::random_table(random_, {"text"}, 80, bad).rows;
          test::write_text(paths.back(), test::encode_parquet({{"text"}, rows_.back()}, random_));
          break;
        default:
          test::write_text(paths.back(), texts_.back());
      }
    }
    options_.inputs = plan_inputs(paths, {.columns = {.paths = {{"text"}}}});
    make_task();
  }

  // The first of two tasks. Its P.src numbers the inputs as the run does.
  void make_task() {
    options_.task = share_of(options_.inputs, {0, 2}, options_.limits.largest_part_bytes());
  }

  std::vector<text_digest> wanted() const {
    const std::string src = test::read_text(file(".src"));
    const auto places = formats::parse_src(std::as_bytes(std::span(src)));
    std::vector<text_digest> digests;
    for (std::size_t d = 0; d < places.document_count(); ++d) {
      const formats::source_place place = places.at(d);
      digests.push_back(
          naive_digest(options_.inputs[place.input].has_rows()
                           ? std::vector<std::string>{*rows_[place.input][place.begin].front()}
                           : texts_of_record(std::string_view(texts_[place.input])
                                                 .substr(place.begin, place.end - place.begin))));
    }
    return digests;
  }

  // What a kill can leave: bytes after those that the journal knows.
  void leave_bytes() {
    const fs::path partial = file(".digests.partial");
    if (!fs::exists(partial)) return;
    std::ofstream out(partial, std::ios::app | std::ios::binary);
    out << std::string(random_() % 100, static_cast<char>(random_()));
  }

  generator random_{test::seed(94)};
  const test::temp_folder folder_{test::quick_folder()};
  run_options options_;
  std::vector<std::string> texts_;
  std::vector<std::vector<test::parquet_row>> rows_;  // of an input of Parquet
};

TEST_F(TextDigestsOfRuns, AreThoseOfTheRecordsThatBecameDocuments) {
  const auto tokenizer = test::byte_tokenizer();
  std::size_t documents = 0;
  int stops = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    make_run(round);
    try {
      stops += test::run_in_pieces(*tokenizer, options_, random_, random_() % 3 == 0 ? 0 : 4,
                                   [this] { leave_bytes(); });
      const auto digests = wanted();
      const digest_file found(file(".digests"));
      ASSERT_EQ(found.documents(), std::ssize(digests));
      for (std::size_t d = 0; d < digests.size(); ++d) {
        ASSERT_EQ(found.at(static_cast<std::int64_t>(d)), digests[d]) << d;
      }
      documents += digests.size();
    } catch (const error& e) {
      ASSERT_THAT(e.what(), testing::StartsWith("every record is bad"));
    }
    for (const auto& entry : fs::directory_iterator(folder_.path())) fs::remove(entry.path());
  }
  std::cout << documents << " documents, " << stops << " stops\n";
  EXPECT_GT(documents, 5000U);
  EXPECT_GT(stops, 30);
}

TEST_F(TextDigestsOfRuns, DoNotDependOnWorkersAndBlocks) {
  const auto tokenizer = test::byte_tokenizer();
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  std::string text;
  for (int i = 0; i < 300; ++i) text += R"({"text": )" + text_or_list(random_) + "}\n";
  test::write_text(folder_ / "in", text);
  options_.inputs = plan_inputs(std::vector{(folder_ / "in").string()});
  options_.output_prefix = folder_ / "out";
  options_.drop_duplicates = duplicates_by::text;
  options_.overwrite = true;
  make_task();
  std::string wanted;
  for (const std::size_t giant_bytes : {std::size_t{60}, std::size_t{1} << 20}) {
    for (const std::size_t block_bytes : {64U, 257U, 4096U}) {
      for (const int workers : {1, 2, 7}) {
        options_.limits.giant_bytes = giant_bytes;
        options_.limits.block_bytes = block_bytes;
        options_.workers = workers;
        (void)run(*tokenizer, options_, quiet);
        if (wanted.empty()) wanted = test::read_text(file(".digests"));
        EXPECT_TRUE(test::read_text(file(".digests")) == wanted);
      }
    }
  }
}

// Without its .digests, a run is not complete, because the merge needs it.
TEST_F(TextDigestsOfRuns, BelongToAFinishedRun) {
  const auto tokenizer = test::byte_tokenizer();
  preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
  test::write_text(folder_ / "in", "{\"text\": \"a\"}\n");
  options_.inputs = plan_inputs(std::vector{(folder_ / "in").string()});
  options_.output_prefix = folder_ / "out";
  options_.drop_duplicates = duplicates_by::text;
  make_task();
  (void)run(*tokenizer, options_, quiet);
  options_.resume = true;
  (void)run(*tokenizer, options_, quiet);
  fs::remove(file(".digests"));
  EXPECT_THROW((void)run(*tokenizer, options_, quiet), config_error);
}

}  // namespace
}  // namespace millrace::preprocess
