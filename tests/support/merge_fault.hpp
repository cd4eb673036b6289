// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "support/resume_fault.hpp"

/// Runs merge_datasets while faults occur.
namespace millrace::test {

/// The tasks of preprocess_data write the parts to parts/, with all sidecars (P.meta, P.sum and so
/// on). A merge writes the files out/whole.*.
class merge_fault : public testing::Test {
 protected:
  merge_fault() : folder_(quick_folder()), random_(seed(55)) {
    std::filesystem::create_directory(folder_ / "in");
    std::filesystem::create_directory(out());
    std::string text;
    while (text.size() < 1'500'000) {
      text += dirty_lines(random_, 100);
      text += "{\"text\": \"" + std::string(random_() % 5000, 'w') + "\", \"title\": \"\"}\n";
    }
    write_text(folder_ / "in/a.jsonl", text);
    make_parts(3);
  }

  std::filesystem::path out() const { return folder_ / "out"; }
  std::filesystem::path parts() const { return folder_ / "parts"; }
  std::string part_name(int task) const {
    char name[64];
    std::snprintf(name, sizeof name, "x_%05d-of-%05d_text_document", task, tasks_);
    return name;
  }

  void make_parts(int tasks) {
    tasks_ = tasks;
    std::filesystem::remove_all(parts());
    std::filesystem::create_directory(parts());
    for (int task = 0; task < tasks; ++task) {
      const auto result = run_program(
          {program("preprocess_data").string(), "--input", (folder_ / "in/a.jsonl").string(),
           "--output-prefix", (parts() / "x").string(), "--tokenizer-type", "ByteLevelTokenizer",
           "--on-bad-record", "quarantine", "--task",
           std::to_string(task) + "/" + std::to_string(tasks)});
      ASSERT_EQ(result.status, 0) << result.err;
    }
  }

  static strings with(strings all, const std::string& more) {
    all.push_back(more);
    return all;
  }
  strings command(const strings& more) const { return command_into(out(), more); }
  strings command_into(const std::filesystem::path& folder, const strings& more) const {
    strings all = {program("merge_datasets").string(), "--input", parts().string(),
                   "--output-prefix", (folder / "whole").string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  program_result run(const strings& more, const strings& environment = {}) const {
    program_options options;
    options.environment = environment;
    return run_program(command(more), options);
  }

  file_set undisturbed(const strings& more) const {
    const std::filesystem::path clean = folder_ / "clean";
    std::filesystem::remove_all(clean);
    std::filesystem::create_directory(clean);
    const auto result = run_program(command_into(clean, more));
    EXPECT_EQ(result.status, 0) << result.err;
    return files_of(clean);
  }

  void empty_out() const {
    std::filesystem::remove_all(out());
    std::filesystem::create_directory(out());
  }

  void expect_files(const file_set& wanted) const {
    const file_set found = files_of(out());
    ASSERT_EQ(names_of(found), names_of(wanted));
    for (const auto& [name, bytes] : wanted) EXPECT_TRUE(found.at(name) == bytes) << name;
  }

  // Expects that each file with a final name is complete: it must equal the file of that name in
  // `wanted` or in `old`. If there is an index, the tokens must belong to the same set as the
  // index.
  void expect_nothing_half(const file_set& wanted, const file_set& old) const {
    const file_set found = files_of(out());
    const auto is = [](const file_set& of, const std::string& name, const std::string& bytes) {
      return of.contains(name) && of.at(name) == bytes;
    };
    for (const auto& [name, bytes] : found) {
      if (name.ends_with(".partial")) continue;
      EXPECT_TRUE(is(wanted, name, bytes) || is(old, name, bytes)) << name;
    }
    if (!found.contains("whole.idx")) return;
    ASSERT_TRUE(found.contains("whole.bin"));
    const file_set& of = is(wanted, "whole.idx", found.at("whole.idx")) ? wanted : old;
    EXPECT_TRUE(is(of, "whole.bin", found.at("whole.bin")));
  }

  static void expect_sentence(const program_result& result, const std::string& part) {
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::AllOf(testing::StartsWith("merge_datasets: "),
                                           testing::HasSubstr(part), testing::EndsWith("\n")));
    EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  }

  inline static const strings shuffled = {"--shuffle-documents", "7"};
  inline static const strings dropping = {"--drop-duplicates"};

  temp_folder folder_;
  std::mt19937_64 random_;
  int tasks_ = 0;
};

}  // namespace millrace::test
