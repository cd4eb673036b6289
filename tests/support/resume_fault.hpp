// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "input/file_format.hpp"
#include "support/compress_with.hpp"
#include "support/compressed.hpp"
#include "support/paths.hpp"
#include "support/run_program.hpp"
#include "support/seed.hpp"

/// Runs preprocess_data, stops it and resumes it.
namespace millrace::test {

using strings = std::vector<std::string>;

inline constexpr int killed = 128 + SIGKILL;
inline constexpr int stopped = 3;

/// Maps file names to file contents.
using file_set = std::map<std::string, std::string>;

inline file_set files_of(const std::filesystem::path& folder) {
  file_set files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    files[entry.path().filename().string()] = read_text(entry.path());
  }
  return files;
}

inline strings names_of(const file_set& files) {
  strings names;
  for (const auto& [name, bytes] : files) names.push_back(name);
  return names;
}

/// Returns `count` lines, good and bad ones of all kinds, with all kinds of line terminators.
inline std::string dirty_lines(std::mt19937_64& random, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    switch (random() % 12) {
      case 0:
        text += "{broken " + number;
        break;
      case 1:
        text += "{\"text\": 3, \"title\": \"x\"}";
        break;
      case 2:
        text += "  ";
        break;
      case 3:
        text += "{\"text\": \"\", \"title\": \"" + number + "\"}";
        break;
      default:
        text.append("{\"text\": \"").append(random() % 90, 'r').append(" \xC3\xA9 ").append(number);
        text.append("\", \"title\": \"t").append(number).append("\"}");
    }
    text += random() % 3 == 0 ? "\r\n" : random() % 9 == 0 ? "\r" : "\n";
  }
  return text;
}

inline std::string good_lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) {
    text += "{\"text\": \"line " + std::to_string(i) + "\", \"title\": \"t\"}\n";
  }
  return text;
}

/// Returns environment variables that give a run blocks of only a few lines, and a checkpoint after
/// each block.
inline strings small_blocks(int bytes = 150) {
  return {"MILLRACE_TEST_BLOCK_BYTES=" + std::to_string(bytes), "MILLRACE_TEST_CHECKPOINT_MS=0"};
}

/// The inputs are in the folder in/, and the outputs are named out/x_*. Tests stop and resume runs,
/// and compare the outputs with those of an undisturbed run.
class resume_fault : public testing::Test {
 protected:
  resume_fault() : folder_(quick_folder()), random_(seed(77)) {
    std::filesystem::create_directory(folder_ / "in");
    std::filesystem::create_directory(out());
  }

  std::filesystem::path out() const { return folder_ / "out"; }
  std::filesystem::path journal() const { return out() / "x.journal"; }
  std::filesystem::path partial(const std::string& end) const {
    return out() / ("x_text_document." + end + ".partial");
  }

  std::string add(const std::string& name, const std::string& contents) {
    const std::filesystem::path path = folder_ / "in" / name;
    write_text(path, contents);
    if (std::find(inputs_.begin(), inputs_.end(), path) == inputs_.end()) {
      inputs_.push_back(path.string());
    }
    return path.string();
  }

  // Adds a file of each common kind. Most of them contain some bad records.
  void add_dirty_inputs(int lines = 12) {
    add("a.jsonl", dirty_lines(random_, lines));
    add("b.jsonl.gz", gzip(dirty_lines(random_, lines)));
    add("c.jsonl", "");
    add("d.jsonl.zst", zstd(dirty_lines(random_, lines / 2)) + zstd_skippable("note") +
                           zstd(dirty_lines(random_, lines / 2)));
    add("e.jsonl", dirty_lines(random_, lines) + "{\"text\": \"no end\", \"title\": \"\"}");
    flags_ = {"--json-keys", "text", "title", "--on-bad-record", "quarantine"};
  }

  // Adds inputs that need special ways of reading: an array, archives that can be read only from
  // their start, and lines that count as giant with `giant_environment`. Some of these lines are
  // bad.
  void add_rare_inputs(int lines) {
    std::string array = "[";
    for (int i = 0; i < lines; ++i) {
      array += i % 7 == 3 ? "17,\n"
                          : "{\"text\": \"in a list " + std::to_string(i) + "\", \"title\": \"\"},";
    }
    add("r.json", array + "{\"text\": \"the last\", \"title\": \"of it\"}]\n");
    const std::string parts = preprocess::optional_input_parts();
    if (parts.find("without bzip2") == parts.npos) {
      add("s.jsonl.bz2", compress_with({"bzip2"}, dirty_lines(random_, lines)));
    }
    if (parts.find("without liblzma") == parts.npos) {
      add("t.jsonl.xz", compress_with({"xz", "-1"}, dirty_lines(random_, lines)));
    }
    std::string giants;
    for (int i = 0; i < 4; ++i) {
      std::string words;
      while (words.size() < 30'000) {
        words.append("word ").append(std::to_string(random_() % 1000)).append("\\n");
      }
      giants += dirty_lines(random_, 5);
      giants += "\n{\"";
      giants += i % 2 == 0 ? "text" : "other";
      giants += "\": \"";
      giants += words;
      giants += "\", \"title\": \"t\"}\n";
    }
    add("u.jsonl", giants);
  }
  static constexpr const char* giant_environment = "MILLRACE_TEST_GIANT_BYTES=4000";

  strings command(const strings& more = {}) const { return command_into(out(), more); }
  strings command_into(const std::filesystem::path& folder, const strings& more = {}) const {
    strings all = {program("preprocess_data").string(),
                   "--output-prefix",
                   (folder / "x").string(),
                   "--tokenizer-type",
                   "ByteLevelTokenizer",
                   "--input"};
    all.insert(all.end(), inputs_.begin(), inputs_.end());
    all.insert(all.end(), flags_.begin(), flags_.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Returns the outputs of an undisturbed run with normal block sizes.
  file_set undisturbed(const strings& environment = {}) const {
    const std::filesystem::path clean = folder_ / "clean";
    std::filesystem::remove_all(clean);
    std::filesystem::create_directory(clean);
    program_options options;
    options.environment = environment;
    const auto result = run_program(command_into(clean), options);
    EXPECT_EQ(result.status, 0) << result.err;
    return files_of(clean);
  }

  void empty_out() const {
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
  }

  program_result run(const strings& more = {}, const strings& environment = small_blocks()) {
    program_options options;
    options.environment = environment;
    return run_program(command(more), options);
  }
  program_result run_killed_at(const std::string& step, const strings& more = {}) {
    strings environment = small_blocks();
    environment.push_back("MILLRACE_TEST_KILL_AT=" + step);
    return run(more, environment);
  }

  // Starts a run and kills it after some checkpoints, so that its journal remains.
  void leave_unfinished(const std::string& step = "journal:9") {
    empty_out();
    ASSERT_EQ(run_killed_at(step).status, killed);
    ASSERT_TRUE(std::filesystem::exists(journal()));
  }

  void expect_resumed(const file_set& wanted, const strings& more = {}) {
    strings all = {"--resume"};
    all.insert(all.end(), more.begin(), more.end());
    const auto result = run(all);
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
  void expect_files(const file_set& wanted) const {
    const file_set found = files_of(out());
    ASSERT_EQ(names_of(found), names_of(wanted));
    for (const auto& [name, bytes] : wanted) EXPECT_TRUE(found.at(name) == bytes) << name;
  }

  // Expects that the last line on stderr starts with the name of the program and contains `part`.
  static void expect_sentence(const program_result& result, const std::string& part) {
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_EQ(result.out, "");
    const std::size_t begin = result.err.find("preprocess_data: ");
    ASSERT_NE(begin, std::string::npos) << result.err;
    const std::string said = result.err.substr(begin);
    EXPECT_THAT(said, testing::AllOf(testing::HasSubstr(part), testing::EndsWith("\n")));
    EXPECT_EQ(said.find('\n'), said.size() - 1) << result.err;
  }

  // Expects that each file with a final name equals the file of that name in `wanted`. Ignores the
  // files of unfinished runs (.partial, .journal).
  void expect_nothing_half(const file_set& wanted) const {
    for (const auto& [name, bytes] : files_of(out())) {
      if (name.ends_with(".partial") || name.ends_with(".journal")) continue;
      EXPECT_TRUE(wanted.contains(name) && wanted.at(name) == bytes) << name;
    }
  }

  // Waits until the run has made some checkpoints.
  bool wait_for_checkpoints(const running_program& program) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    std::error_code none;
    while (!program.ended() && std::chrono::steady_clock::now() < give_up) {
      const auto size = std::filesystem::file_size(journal(), none);
      if (!none && size > 4000) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  temp_folder folder_;
  std::mt19937_64 random_;
  strings inputs_;
  strings flags_;
};

}  // namespace millrace::test
