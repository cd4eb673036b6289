// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <millrace/formats/mmidx.hpp>

#include "output/committer.hpp"
#include "record/record_parser.hpp"
#include "support/compressed.hpp"
#include "support/naive_fim.hpp"
#include "support/naive_lines.hpp"
#include "support/naive_sample.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using generator = std::mt19937_64;
using formats::dtype;

const std::vector<std::string> record_keys = {"text", "title"};
constexpr std::uint16_t eod = 0;

template <class T>
const T& pick(generator& random, const std::vector<T>& from) {
  return from[random() % from.size()];
}

// ---- random corpora ----------------------------------------------------------------------------

std::string random_string(generator& random) {
  static const std::vector<std::string> parts = {"a",
                                                 "word ",
                                                 "\\n",
                                                 "\\\"",
                                                 "\\\\",
                                                 "\\/",
                                                 "\\u0000",
                                                 "\\u00e9",
                                                 "\xC3\xA9",
                                                 "\\ud83d\\ude00",
                                                 "\xF0\x9F\x98\x80",
                                                 "\xE2\x80\xA8",
                                                 "\xC2\x85",
                                                 "\\ud800",
                                                 "\\udc00x",
                                                 "{\\\"",
                                                 ",",
                                                 "\x7F"};
  std::string text = "\"";
  for (std::size_t n = random() % 4 == 0 ? 0 : random() % 12; n > 0; --n)
    text += pick(random, parts);
  if (random() % 60 == 0) text += std::string(random() % 6000, 'g');  // longer than most blocks
  return text + '"';
}

std::string random_value(generator& random) {
  if (random() % 3 != 0) return random_string(random);
  std::string list = "[";
  for (std::size_t n = random() % 4; n > 0; --n) {
    list += random_string(random);
    if (n > 1) list += pick<std::string>(random, {",", " , "});
  }
  return list + "]";
}

std::string random_record(generator& random) {
  const std::string text = "\"text\": " + random_value(random);
  const std::string title =
      pick<std::string>(random, {"\"title\": ", "\"t\\u0069tle\":"}) + random_value(random);
  const std::string other = "\"meta\": {\"n\": [1, -2.5e3, NaN, null], \"text\": 7}";
  std::vector<std::string> members = {text, title};
  if (random() % 3 == 0) members.push_back(other);
  if (random() % 8 == 0) members.push_back("\"text\": " + random_value(random));
  std::string record = "{";
  for (std::size_t i = 0; i < members.size(); ++i) record += (i > 0 ? ", " : "") + members[i];
  return record + pick<std::string>(random, {"}", " }", "}\t"});
}

std::string random_bad_record(generator& random) {
  const std::string good = random_record(random);
  switch (random() % 7) {
    case 0:
      return good.substr(0, 1 + random() % (good.size() - 3));
    case 1:
      return "{\"text\": \"only\"}";
    case 2:
      return "{\"text\": \"a\", \"title\": [\"b\", 7]}";
    case 3:
      return "{\"text\": 1, \"title\": \"b\"}";
    case 4:
      return "\"text, title\"";  // not a list, which would make the file an array
    case 5:
      return "{\"text\": \"\xFF\", \"title\": \"\"}";
    default:
      return "no JSON at all";
  }
}

std::string random_file(generator& random, bool with_bad) {
  std::string file = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  bool first = true;
  for (std::size_t n = random() % 60; n > 0; --n) {
    if (random() % 7 == 0) {
      file += pick<std::string>(random, {"", " ", "\t \t"});
    } else {
      std::string record =
          with_bad && random() % 5 == 0 ? random_bad_record(random) : random_record(random);
      // A file that begins with a list would be read as one array.
      if (first && record.front() == '[') record = "no JSON at all";
      first = false;
      file += record;
    }
    if (n > 1 || random() % 2 == 0) file += pick<std::string>(random, {"\n", "\n", "\r\n", "\r"});
  }
  return file;
}

// ---- the model: one record after another, all in memory ---------------------------------------

struct model_column {
  std::vector<std::uint16_t> ids;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> document_index = {0};
  std::int64_t empty_documents = 0;

  test::dataset_bytes bytes() const {
    const auto idx = formats::encode_mmidx(dtype::uint16, lengths, document_index);
    return {std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * 2),
            std::string(reinterpret_cast<const char*>(idx.data()), idx.size())};
  }
};

struct model_result {
  std::vector<model_column> columns{record_keys.size()};
  std::vector<std::string> faults;  // as reported to the user
  record_counts counts;
};

void add_document(model_column& to, std::span<const std::string_view> texts, bool append_eod,
                  std::optional<test::naive_fim> fim) {
  bool empty = true;
  for (const std::string_view given : texts) {
    const std::string text = fim ? fim->permuted(std::string(given)) : std::string(given);
    if (text.empty()) continue;
    empty = false;
    for (const char c : text) to.ids.push_back(static_cast<unsigned char>(c));
    to.lengths.push_back(static_cast<std::int32_t>(text.size()));
  }
  if (append_eod && !empty) {
    to.ids.push_back(eod);
    ++to.lengths.back();
  }
  to.document_index.push_back(static_cast<std::int64_t>(to.lengths.size()));
}

void add_file(model_result& to, const std::string& path, std::string_view file, bool append_eod,
              const std::optional<sample_options>& sample, const std::optional<fim_options>& fim) {
  const std::size_t mark = file.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  std::int64_t number = 0;
  for (const test::naive_line& line : test::naive_lines_at(file.substr(mark))) {
    ++number;
    ++to.counts.lines;
    if (line.text.find_first_not_of(" \t") == std::string::npos) {
      ++to.counts.blank_lines;
      continue;
    }
    if (sample && static_cast<double>(test::sample_number(
                      sample->seed, path, mark + line.offset)) >= sample->rate * 0x1p53) {
      ++to.counts.not_sampled;
      continue;
    }
    const std::string padded = line.text + std::string(record_parser::padding_bytes, '?');
    record_parser parser(record_keys);  // a new one, so that nothing remains from the last record
    if (const auto fault = parser.parse(std::string_view(padded).substr(0, line.text.size()))) {
      ++to.counts.bad_records[static_cast<std::size_t>(fault->kind)];
      to.faults.push_back(path + ":" + std::to_string(number) + " (byte " +
                          std::to_string(mark + line.offset + fault->offset_bytes) +
                          "): " + fault->what);
      continue;
    }
    for (std::size_t key = 0; key < record_keys.size(); ++key) {
      model_column& column = to.columns[key];
      const std::size_t before = column.lengths.size();
      std::optional<test::naive_fim> permuting;
      if (fim) permuting.emplace(*fim, path, mark + line.offset);
      add_document(column, parser.texts(key), append_eod, std::move(permuting));
      column.empty_documents += column.lengths.size() == before ? 1 : 0;
      for (const std::string_view text : parser.texts(key)) {
        to.counts.text_bytes += static_cast<std::int64_t>(text.size());
      }
    }
    ++to.counts.documents;
    to.counts.lone_surrogates += parser.lone_surrogates();
  }
}

// ---- the comparison ----------------------------------------------------------------------------

struct way {
  int workers = 1;
  std::size_t block_bytes = 0;
  std::string compressed_with;
};

std::vector<way> all_ways() {
  std::vector<way> ways;
  for (const std::string compressed_with : {"plain", "gz", "zst"}) {
    for (const std::size_t block_bytes :
         {std::size_t{64}, std::size_t{257}, std::size_t{4096}, std::size_t{512} << 10}) {
      for (const int workers : {1, 2, 7}) ways.push_back({workers, block_bytes, compressed_with});
    }
  }
  return ways;
}

std::string compressed(const std::string& text, const std::string& compressed_with) {
  if (compressed_with == "gz") return test::gzip(text);
  if (compressed_with == "zst") return test::zstd(text);
  return text;
}

class PreprocessInvariance : public testing::Test {
 protected:
  // Makes a new corpus of several files, and the output of the model for it. The names of the
  // files, which are random, decide what a sample takes. A run refuses to take only bad records.
  void make_corpus(const way& how, bool with_bad) {
    do {
      make_any_corpus(how, with_bad);
    } while (model_.counts.documents == 0 && !model_.faults.empty());
  }
  void make_any_corpus(const way& how, bool with_bad) {
    model_ = {};
    paths_.clear();
    append_eod_ = random_() % 2 == 0;
    sample_.reset();
    if (random_() % 2 == 0) {
      sample_ = {.rate = 0.01 * static_cast<double>(1 + random_() % 100), .seed = random_()};
    }
    fim_.reset();
    if (random_() % 2 == 0) fim_ = test::random_fim(random_);
    for (std::size_t files = 1 + random_() % 3; files > 0; --files) {
      const std::string file = random_file(random_, with_bad);
      const auto path =
          folder_ / ("in" + std::to_string(paths_.size()) + "." + how.compressed_with);
      test::write_text(path, compressed(file, how.compressed_with));
      paths_.push_back(path.string());
      add_file(model_, path.string(), file, append_eod_, sample_, fim_);
    }
  }

  run_summary run_on_corpus(const way& how, bad_record_policy policy) {
    run_options options;
    options.output_prefix = folder_ / "out";
    options.keys = plain_keys(record_keys);
    options.append_eod = append_eod_;
    options.sample = sample_;
    options.fim = fim_;
    options.workers = how.workers;
    options.overwrite = !resume_;
    options.resume = resume_;
    options.checkpoint_period = std::chrono::milliseconds(random_() % 2 == 0 ? 0 : 1000);
    options.on_bad_record = policy;
    options.limits.block_bytes = how.block_bytes;
    return test::preprocess_files(*tokenizer_, paths_, options);
  }

  std::filesystem::path prefix(const std::string& key) const {
    return folder_ / ("out_" + key + "_document");
  }

  void expect_equal(const run_summary& summary) const {
    for (std::size_t key = 0; key < record_keys.size(); ++key) {
      const auto found = test::read_dataset(prefix(record_keys[key]));
      const auto wanted = model_.columns[key].bytes();
      EXPECT_TRUE(found.bin == wanted.bin) << record_keys[key];
      EXPECT_TRUE(found.idx == wanted.idx) << record_keys[key];
      EXPECT_EQ(summary.outputs[key].empty_documents, model_.columns[key].empty_documents);
    }
    EXPECT_EQ(summary.counts.lines, model_.counts.lines);
    EXPECT_EQ(summary.counts.blank_lines, model_.counts.blank_lines);
    EXPECT_EQ(summary.counts.not_sampled, model_.counts.not_sampled);
    EXPECT_EQ(summary.counts.documents, model_.counts.documents);
    EXPECT_EQ(summary.counts.lone_surrogates, model_.counts.lone_surrogates);
    EXPECT_EQ(summary.counts.text_bytes, model_.counts.text_bytes);
    EXPECT_EQ(summary.counts.bad_records, model_.counts.bad_records);
  }

  generator random_{test::seed(41)};
  test::temp_folder folder_{test::quick_folder()};
  std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
  std::vector<std::string> paths_;
  std::optional<sample_options> sample_;
  std::optional<fim_options> fim_;
  bool append_eod_ = false;
  bool resume_ = false;
  model_result model_;
};

// The number of threads, block boundaries and compression must not affect the output.
TEST_F(PreprocessInvariance, EqualsTheSequentialModel) {
  for (const way& how : all_ways()) {
    SCOPED_TRACE(testing::Message() << how.workers << " workers, blocks of " << how.block_bytes
                                    << ", " << how.compressed_with);
    make_corpus(how, false);
    expect_equal(run_on_corpus(how, bad_record_policy::fail));
    if (HasFailure()) return;
  }
}

// A skipped record has no effect except that it is counted and reported.
TEST_F(PreprocessInvariance, EqualsTheSequentialModelWhereBadRecordsAreSkipped) {
  for (const way& how : all_ways()) {
    SCOPED_TRACE(testing::Message() << how.workers << " workers, blocks of " << how.block_bytes
                                    << ", " << how.compressed_with);
    make_corpus(how, true);
    testing::internal::CaptureStderr();
    const run_summary summary = run_on_corpus(how, bad_record_policy::skip);
    std::istringstream notes(testing::internal::GetCapturedStderr());
    expect_equal(summary);
    std::vector<std::string> told;
    for (std::string note; std::getline(notes, note);) told.push_back(note);
    std::vector<std::string> expected = model_.faults;
    if (expected.size() > committer::most_notes) {
      expected.resize(committer::most_notes);
      expected.emplace_back("more bad records are counted, but not reported");
    }
    EXPECT_EQ(told, expected);
    if (HasFailure()) return;
  }
}

// The user may repair the reported record and try again. So the reported record must always be the
// first bad one. The user may also choose to skip bad records and resume.
TEST_F(PreprocessInvariance, FailsWithTheFirstBadRecordAndGoesOnWithoutIt) {
  for (const way& how : all_ways()) {
    SCOPED_TRACE(testing::Message() << how.workers << " workers, blocks of " << how.block_bytes
                                    << ", " << how.compressed_with);
    do {
      make_corpus(how, true);
    } while (model_.faults.empty());
    try {
      (void)run_on_corpus(how, bad_record_policy::fail);
      ADD_FAILURE() << "accepted " << model_.faults.front();
    } catch (const bad_record_error& e) {
      EXPECT_EQ(e.what(), model_.faults.front());
    }
    for (const std::string& key : record_keys) {
      EXPECT_FALSE(std::filesystem::exists(prefix(key).string() + ".idx"));
    }
    testing::internal::CaptureStderr();
    resume_ = true;
    const run_summary summary = run_on_corpus(how, bad_record_policy::skip);
    resume_ = false;
    (void)testing::internal::GetCapturedStderr();
    expect_equal(summary);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      EXPECT_FALSE(entry.path().filename().string().ends_with(".partial")) << entry.path();
      std::error_code ignored;
      if (entry.path().filename().string().starts_with("out")) {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::preprocess
