// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include <millrace/formats/src.hpp>
#include <millrace/meta/dataset_meta.hpp>

#include "run/pipeline.hpp"
#include "support/compressed.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_lines.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests that P partitions give the same output as one partition with the lines reordered
// accordingly.

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

const std::vector<std::string> keys = {"text", "title"};

std::string random_line(generator& random) {
  const auto text = [&] { return std::string(random() % 40, 'a'); };
  switch (random() % 10) {
    case 0:
      return "";
    case 1:
      return " \t";
    case 2:
      return "no JSON";
    case 3:
      return R"({"text": ["a", "", "bc"], "title": []})";
    case 4:
      return "{\"text\": \"\xFF\"}";
    case 5:
      return R"({"text": "", "title": ""})";
    default:
      return "{\"text\": \"" + std::to_string(random()) + text() + "\", \"title\": \"" + text() +
             "\"}";
  }
}

std::string random_dealt_file(generator& random) {
  static const std::vector<std::string> ends = {"\n", "\n", "\r\n", "\r"};
  std::string text = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  for (std::size_t n = random() % 8 == 0 ? 0 : random() % 120; n > 0; --n) {
    text += random_line(random);
    if (n > 1 || random() % 2 == 0) text += ends[random() % ends.size()];
  }
  return text;
}

std::string compressed(generator& random, const std::string& text) {
  switch (random() % 3) {
    case 0:
      return test::gzip(text);
    case 1:
      return test::zstd(text);
    default:
      return text;
  }
}

/// Returns the file name and the source place of each document of a dataset.
std::vector<std::pair<std::string, formats::source_place>> places_of(const fs::path& prefix) {
  const std::string file = test::read_text(prefix.string() + ".src");
  const auto view = formats::parse_src(std::as_bytes(std::span(file)));
  std::vector<std::pair<std::string, formats::source_place>> places;
  for (std::uint64_t i = 0; i < view.document_count(); ++i) {
    const auto place = view.at(i);
    places.emplace_back(view.input_name(place.input), place);
  }
  return places;
}

class PartitionInvariance : public testing::Test {
 protected:
  void make_corpus() {
    paths_.clear();
    lines_.clear();
    lines_before_.clear();
    giant_bytes_ = random_() % 2 == 0 ? 20 + random_() % 100 : read_limits().giant_bytes;
    for (std::size_t n = 1 + random_() % 4; n > 0; --n) {
      const std::string text = random_dealt_file(random_);
      const std::size_t mark = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
      paths_.push_back((folder_ / ("in" + std::to_string(paths_.size()))).string());
      test::write_text(paths_.back(), compressed(random_, text));
      lines_before_.push_back(lines_.size());
      const auto lines = test::naive_lines(std::string_view(text).substr(mark));
      lines_.insert(lines_.end(), lines.begin(), lines.end());
    }
  }

  // Returns the lines in the order of Megatron's partitions: partition k gets every line whose
  // index is k modulo the number of partitions.
  std::string reordered(std::size_t partitions) const {
    std::vector<std::string> hands(partitions);
    for (std::size_t i = 0; i < lines_.size(); ++i) hands[i % partitions] += lines_[i] + '\n';
    std::string all;
    for (const std::string& hand : hands) all += hand;
    return all;
  }

  run_options options_for(const std::string& name, const std::vector<std::string>& inputs) const {
    run_options options;
    options.inputs = plan_inputs(inputs);
    options.keys = plain_keys(keys);
    options.append_eod = true;
    options.on_bad_record = bad_record_policy::quarantine;
    options.output_prefix = folder_ / name;
    options.limits.spool_folder = folder_.path();
    options.overwrite = true;
    options.limits.giant_bytes = giant_bytes_;
    return options;
  }

  fs::path dataset(const std::string& name, const std::string& key) const {
    return folder_ / (name + "_" + key + "_document");
  }

  // Expects the source places of the plain run. Each place must be in the partition that the line
  // number determines.
  void expect_places(const std::string& key, std::size_t partitions) const {
    std::vector<std::vector<std::pair<std::string, formats::source_place>>> hands(partitions);
    for (const auto& place : places_of(dataset("plain", key))) {
      const std::size_t number =
          lines_before_[place.second.input] + static_cast<std::size_t>(place.second.line) - 1;
      hands[number % partitions].push_back(place);
    }
    std::vector<std::pair<std::string, formats::source_place>> wanted;
    for (const auto& hand : hands) wanted.insert(wanted.end(), hand.begin(), hand.end());
    EXPECT_EQ(places_of(dataset("out", key)), wanted);
  }

  void expect_meta(const std::string& key, int partitions) const {
    const auto meta = [&](const std::string& name) {
      return formats::parse_meta(test::read_text(dataset(name, key).string() + ".meta"));
    };
    formats::dataset_meta wanted = meta("plain");
    const formats::dataset_meta found = meta("out");
    if (partitions > 1) wanted.options.emplace_back("--partitions", std::to_string(partitions));
    wanted.sum_root = found.sum_root;
    EXPECT_EQ(found, wanted);
  }

  generator random_{test::seed(91)};
  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::string> paths_;
  std::vector<std::string> lines_;
  std::vector<std::size_t> lines_before_;  // number of lines before each file
  std::size_t giant_bytes_ = 0;
};

TEST_F(PartitionInvariance, IsTheOrderOfLinesDealtOutByHand) {
  const auto tokenizer = test::byte_tokenizer();
  int stopped_times = 0;
  for (int round = 0; round < 8; ++round) {
    make_corpus();
    test::run_in_pieces(*tokenizer, options_for("plain", paths_), random_, 0);
    for (const int partitions : {1, 2, 3, 8, 130}) {
      SCOPED_TRACE(testing::Message() << "round " << round << ", " << partitions << " partitions");
      const auto by_hand = (folder_ / "by_hand.jsonl").string();
      test::write_text(by_hand, reordered(static_cast<std::size_t>(partitions)));
      test::run_in_pieces(*tokenizer, options_for("hand", {by_hand}), random_, 0);

      run_options options = options_for("out", paths_);
      options.overwrite = false;
      options.partitions = partitions;
      stopped_times +=
          test::run_in_pieces(*tokenizer, options, random_, random_() % 2 == 0 ? 4 : 0);
      options.resume = true;  // resume again: there is nothing to do
      preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
      (void)run(*tokenizer, options, quiet);

      for (const std::string& key : keys) {
        EXPECT_TRUE(test::read_dataset(dataset("out", key)) ==
                    test::read_dataset(dataset("hand", key)))
            << key;
        expect_places(key, static_cast<std::size_t>(partitions));
        expect_meta(key, partitions);
        const auto bad = [&](const char* name) { return dataset(name, key).string() + ".bad"; };
        EXPECT_EQ(fs::exists(bad("out")), fs::exists(bad("plain")));
        if (fs::exists(bad("plain"))) {
          EXPECT_EQ(test::read_text(bad("out")), test::read_text(bad("plain")));
        }
      }
      for (const auto& entry : fs::directory_iterator(folder_.path())) {
        const std::string name = entry.path().filename().string();
        EXPECT_FALSE(name.ends_with(".partial") || name.ends_with(".journal")) << name;
        if (name.starts_with("out_")) fs::remove(entry.path());
      }
      if (HasFailure()) return;
    }
  }
  std::cout << "stopped and resumed " << stopped_times << " times\n";
  EXPECT_GT(stopped_times, 10);
}

}  // namespace
}  // namespace millrace::preprocess
