// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "merge/content_key.hpp"
#include "merge/merge.hpp"
#include "run/pipeline.hpp"
#include "support/compressed.hpp"
#include "support/conversations.hpp"
#include "support/interrupted_runs.hpp"
#include "support/naive_fim.hpp"
#include "support/parquet_table.hpp"
#include "support/paths.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"
#include "support/tokenizers.hpp"

// Tests that the merged parts of N tasks equal the output of one process: every file, byte for
// byte.

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using generator = std::mt19937_64;

const std::vector<std::string> task_keys = {"text", "title"};
const std::vector<std::string> suffixes = {".bin", ".idx",  ".meta", ".sum",     ".src",
                                           ".bad", ".mask", ".cuts", ".digests", ".duplicates"};

std::string random_line(generator& random, bool large) {
  const auto text = [&] {
    if (random() % 4 == 0) return std::string(random() % 5, 'a');  // others have the same
    std::string letters(random() % (large ? 20'000 : 40), ' ');
    for (char& c : letters) c = static_cast<char>('a' + random() % 26);
    return letters;
  };
  switch (random() % 12) {
    case 0:
      return "";
    case 1:
      return " \t";
    case 2:
      return "no JSON";
    case 3:
      return R"({"text": "\ud800", "title": ["a", "", "b"]})";
    case 4:
      return "{\"text\": \"\xFF\"}";
    case 5:
      return R"({"text": "", "title": ""})";
    default:
      return "{\"text\": \"" + text() + "\", \"title\": \"" + text() + "\"}";
  }
}

std::string random_text(generator& random, bool large) {
  static const std::vector<std::string> ends = {"\n", "\n", "\r\n", "\r"};
  std::string text = random() % 4 == 0 ? "\xEF\xBB\xBF" : "";
  for (std::size_t n = random() % (large ? 400 : 50); n > 0; --n) {
    text += random_line(random, large);
    if (n > 1 || random() % 2 == 0) text += ends[random() % ends.size()];
  }
  return text;
}

std::string random_array(generator& random) {
  std::string text = "[";
  for (std::size_t n = random() % 30; n > 0; --n) {
    text += "{\"text\": \"" + std::to_string(random()) + "\", \"title\": \"t\"}";
    if (n > 1) text += random() % 2 == 0 ? "," : " ,\n";
  }
  return text + "]\n";
}

// Compresses a text into several members or frames. Each one except the last holds at least 1 MiB
// of text, so that a reader can start at the next one.
template <class Compress>
std::string compressed_in_parts(generator& random, std::string_view text, Compress&& compress) {
  std::string compressed;
  do {
    const std::size_t size = std::min<std::size_t>(text.size(), (1 << 20) + random() % 400'000);
    compressed += compress(text.substr(0, size));
    text.remove_prefix(size);
  } while (!text.empty());
  return compressed;
}

std::string random_task_input(generator& random) {
  switch (random() % 14) {
    case 0:
      return "";
    case 1:
      return "\xEF\xBB\xBF";
    case 2:
      return random_array(random);
    case 3:
      return test::gzip(random_text(random, false));
    case 4:
      return test::zstd(random_text(random, false));
    case 5:
      return test::gzip("");
    case 6:
      return compressed_in_parts(random, random_text(random, true),
                                 [](std::string_view part) { return test::gzip(part); });
    case 7:
      return compressed_in_parts(random, random_text(random, true),
                                 [](std::string_view part) { return test::zstd(part); });
    case 8:
    case 9:
      return test::encode_parquet(test::random_table(random, task_keys, 200, true), random);
    default:
      return random_text(random, false);
  }
}

int ended_early = 0;  // number of wholes that --max-tokens ended
int dropped = 0;      // and of those that have duplicates

/// Runs the whole and the tasks, and compares the merged parts with the whole.
/// @return number of stops
int expect_parts_to_merge(const tokenizer::tokenizer& tokenizer, const run_options& options,
                          const test::temp_folder& folder, generator& random) {
  int stopped_times = 0;
  std::vector<std::string> keys;
  for (const text_key& key : options.keys) keys.push_back(key.name);
  test::run_in_pieces(tokenizer, options, random, 0);
  if (options.most_tokens) {
    const auto meta = test::read_text(folder / ("whole_" + keys.front() + "_document.meta"));
    ended_early += meta.find("stopped_before") != std::string::npos ? 1 : 0;
  }
  dropped += fs::exists(folder / ("whole_" + keys.front() + "_document.duplicates")) ? 1 : 0;
  for (const std::int64_t of : {1, 2, 3, 7, 16}) {
    SCOPED_TRACE(of);
    for (const std::string& key : keys) fs::create_directories(folder / key);
    for (std::int64_t index = 0; index < of; ++index) {
      run_options part = options;
      part.task = share_of(part.inputs, {index, of}, part.limits.largest_part_bytes());
      part.output_prefix = task_prefix(folder / "part", {index, of});
      stopped_times += test::run_in_pieces(tokenizer, part, random, random() % 3 == 0 ? 3 : 0);
      part.resume = true;  // resume again: there is nothing to do
      preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
      (void)run(tokenizer, part, quiet);
    }
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("part_")) continue;
      const auto key = std::ranges::find_if(keys, [&](const std::string& each) {
        return name.find("_" + each + "_") != std::string::npos;
      });
      fs::rename(entry.path(), folder.path() / *key / name);
    }
    for (const std::string& key : keys) {
      merge_options into{.input = folder / key, .output_prefix = folder / "merged"};
      // A single task drops duplicates itself, so its merge has no use for memory.
      if (options.drop_duplicates && of > 1) into.memory_bytes = 1 + random() % 10'000;
      (void)merge(into);
      for (const std::string& suffix : suffixes) {
        // Of a single task, this is not the work of the merge.
        if (of == 1 && suffix == ".duplicates") continue;
        const auto wanted = folder / ("whole_" + key + "_document" + suffix);
        const auto found = folder / ("merged" + suffix);
        EXPECT_EQ(fs::exists(wanted), fs::exists(found)) << key << suffix;
        if (!fs::exists(wanted) || !fs::exists(found)) continue;
        EXPECT_TRUE(test::read_text(wanted) == test::read_text(found)) << key << suffix;
        fs::remove(found);
      }
      fs::remove_all(folder / key);
    }
  }
  return stopped_times;
}

run_options options_for(const std::vector<std::string>& inputs, const test::temp_folder& folder,
                        generator& random) {
  run_options options;
  options.inputs = plan_inputs(inputs, {.columns = {.paths = {{"text"}, {"title"}}}});
  options.append_eod = random() % 2 == 0;
  options.on_bad_record = bad_record_policy::quarantine;
  options.output_prefix = folder / "whole";
  if (random() % 3 == 0) options.limits.giant_bytes = 20 + random() % 100;
  options.limits.spool_folder = folder.path();
  if (random() % 3 == 0) options.sample = {.rate = 0.7, .seed = random()};
  if (random() % 5 == 0) options.checksums = false;
  if (random() % 5 == 0) options.provenance = false;
  if (random() % 2 == 0) {
    // From no document to more than all.
    options.most_tokens = static_cast<std::int64_t>(1 + random() % (1ULL << (random() % 20)));
  }
  if (random() % 2 == 0) {
    const bool by_ids = random() % 2 == 0;
    options.drop_duplicates = by_ids && has_xxhash() ? duplicates_by::ids : duplicates_by::text;
    options.duplicates_bytes = 1 + random() % 10'000;
  }
  return options;
}

// The names of the inputs, which are random, decide what a sample takes. A run refuses to take only
// bad records, so there are always enough good ones.
std::string good_records(const std::string& record) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += record + "\n";
  return text;
}

TEST(TaskInvariance, PartsMergedAreWhatOneProcessWrites) {
  generator random(test::seed(71));
  const auto tokenizer = test::byte_tokenizer();
  int stopped_times = 0;
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const test::temp_folder folder(test::quick_folder());
    std::vector<std::string> inputs;
    for (std::size_t n = 1 + random() % 5; n > 0; --n) {
      inputs.push_back((folder / ("input" + std::to_string(n))).string());
      test::write_text(inputs.back(), random_task_input(random));
    }
    if (random() % 3 == 0) inputs.push_back(inputs.front());  // a file may be listed twice
    inputs.push_back((folder / "good").string());
    test::write_text(inputs.back(), good_records(R"({"text": "a", "title": "b"})"));
    run_options options = options_for(inputs, folder, random);
    options.keys = plain_keys(task_keys);
    if (round % 2 == 1) {  // the last input alone has duplicates
      const bool by_text = round % 4 == 1 || !has_xxhash();
      options.drop_duplicates = by_text ? duplicates_by::text : duplicates_by::ids;
      options.provenance = true;
      if (round < 4) options.most_tokens.reset();
    }
    if (options.drop_duplicates) options.keys.resize(1);
    // The last input alone has more documents than this.
    if (round == 0) options.most_tokens = 1 + static_cast<std::int64_t>(random() % 20);
    if (random() % 2 == 0) {
      options.fim = test::random_fim(random);
      options.limits.giant_bytes += 20;  // larger records are bad, but not the good ones
    }
    stopped_times += expect_parts_to_merge(*tokenizer, options, folder, random);
    ASSERT_FALSE(HasFailure());
  }
  std::cout << "stopped and resumed " << stopped_times << " times, " << ended_early
            << " ended early, " << dropped << " have duplicates\n";
  EXPECT_GT(stopped_times, 5);
  EXPECT_GT(ended_early, 0);
  EXPECT_GT(dropped, 1);
}

/// Compares all files of two datasets.
void expect_same_files(const std::string& found, const std::string& wanted) {
  for (const std::string& suffix : suffixes) {
    ASSERT_EQ(fs::exists(found + suffix), fs::exists(wanted + suffix)) << suffix;
    if (!fs::exists(wanted + suffix)) continue;
    EXPECT_TRUE(test::read_text(found + suffix) == test::read_text(wanted + suffix)) << suffix;
  }
}

// A budget, a sample and the dropping of duplicates each change which documents there are. In all
// combinations, workers, stops and tasks change nothing.
TEST(TaskInvariance, EachCombinationOfChoicesGivesTheSameBytes) {
  generator random(test::seed(73));
  const auto tokenizer = test::byte_tokenizer();
  const test::temp_folder folder(test::quick_folder());
  std::vector<std::string> inputs;
  const auto add = [&](const std::string& bytes) {
    inputs.push_back((folder / ("input" + std::to_string(inputs.size()))).string());
    test::write_text(inputs.back(), bytes);
  };
  add(random_text(random, false) + "\n" + good_records(R"({"text": "abc", "title": "b"})"));
  add(test::encode_parquet(test::random_table(random, task_keys, 200, true), random));
  add(test::gzip(random_text(random, false)));
  inputs.push_back(inputs.front());
  const auto name = [&](const std::string& prefix) {
    return (folder / (prefix + "_text_document")).string();
  };
  int stops = 0;
  for (int choice = 0; choice < 12; ++choice) {
    run_options options;
    options.inputs = plan_inputs(inputs, {.columns = {.paths = {{"text"}}}});
    options.on_bad_record = bad_record_policy::quarantine;
    options.output_prefix = folder / "whole";
    options.limits.spool_folder = folder.path();
    options.limits.giant_bytes = 60;
    options.limits.block_bytes = 500;
    options.duplicates_bytes = 5000;
    if (choice % 2 == 1) options.most_tokens = 600;
    if (choice / 2 % 2 == 1) options.sample = {.rate = 0.7, .seed = 5};
    if (choice / 4 == 1) options.drop_duplicates = duplicates_by::text;
    if (choice / 4 == 2) options.drop_duplicates = duplicates_by::ids;
    if (choice / 4 == 2 && !has_xxhash()) continue;
    SCOPED_TRACE(choice);
    preprocess::progress quiet(preprocess::progress::style::silent, 1, 0);
    (void)run(*tokenizer, options, quiet);
    for (const int workers : {2, 7}) {
      options.workers = workers;
      options.output_prefix = folder / ("workers" + std::to_string(workers));
      (void)run(*tokenizer, options, quiet);
      expect_same_files(name("workers" + std::to_string(workers)), name("whole"));
    }
    options.output_prefix = folder / "stopped";
    stops += test::run_in_pieces(*tokenizer, options, random, 3);
    expect_same_files(name("stopped"), name("whole"));
    for (const std::int64_t of : {3, 7}) {
      const auto parts = folder / ("parts" + std::to_string(of));
      fs::create_directory(parts);
      for (std::int64_t index = 0; index < of; ++index) {
        run_options part = options;
        part.task = share_of(part.inputs, {index, of}, part.limits.largest_part_bytes());
        part.output_prefix = task_prefix(parts / "part", {index, of});
        stops += test::run_in_pieces(*tokenizer, part, random, 3);
      }
      const std::string merged = folder / ("merged" + std::to_string(of));
      merge_options into{.input = parts, .output_prefix = merged};
      if (options.drop_duplicates) into.memory_bytes = 5000;
      (void)merge(into);
      expect_same_files(merged, name("whole"));
    }
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (!entry.path().filename().string().starts_with("input")) fs::remove_all(entry.path());
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
  std::cout << stops << " stops\n";
  EXPECT_GT(stops, 40);
}

TEST(TaskInvariance, PartsOfConversationsMergedAreWhatOneProcessWrites) {
  generator random(test::seed(72));
  const auto tokenizer = test::byte_tokenizer();
  int stopped_times = 0;
  for (const auto overlong :
       {overlong_policy::error, overlong_policy::drop, overlong_policy::truncate}) {
    SCOPED_TRACE(static_cast<int>(overlong));
    const test::temp_folder folder(test::quick_folder());
    std::vector<std::string> inputs;
    for (std::size_t n = 1 + random() % 4; n > 0; --n) {
      std::string text = good_records(R"({"messages": [{"role": "user", "content": "a"},)"
                                      R"( {"role": "assistant", "content": "b"}]})") +
                         test::random_conversation(random) + "\n" +
                         R"({"messages": [{"role": "assistant", "content": "a"}]})" + "\n";
      for (std::size_t lines = random() % 300; lines > 0; --lines) {
        text += test::random_conversation(random) + "\n";
      }
      inputs.push_back((folder / ("input" + std::to_string(n))).string());
      test::write_text(inputs.back(), random() % 3 == 0 ? test::zstd(text) : text);
    }
    run_options options = options_for(inputs, folder, random);
    options.keys = plain_keys({"messages"});
    if (options.drop_duplicates) options.drop_duplicates = duplicates_by::ids;
    if (!has_xxhash()) options.drop_duplicates.reset();
    options.limits.giant_bytes = 200 + random() % 200;
    auto conversations = test::plain_conversations();
    conversations.most_tokens = 60;
    conversations.overlong = overlong;
    options.conversations = std::make_shared<const conversation_options>(std::move(conversations));
    stopped_times += expect_parts_to_merge(*tokenizer, options, folder, random);
    ASSERT_FALSE(HasFailure());
  }
  std::cout << "stopped and resumed " << stopped_times << " times\n";
  EXPECT_GT(stopped_times, 2);
}

}  // namespace
}  // namespace millrace::preprocess
