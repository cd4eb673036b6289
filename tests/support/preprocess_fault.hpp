// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/run_program.hpp"

/// Runs preprocess_data while faults occur.
namespace millrace::test {

inline std::string records(std::size_t count, const std::string& word) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text +=
        "{\"text\": \"" + word + " " + std::to_string(i) + " " + std::string(i % 40, 'x') + "\"}\n";
  }
  return text;
}

// Returns records with little redundancy: their compressed form is at least a third as large. So a
// damaged byte in the compressed file affects the text at about the same relative position.
inline std::string random_records(std::size_t count) {
  std::mt19937_64 random(3);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += "{\"text\": \"" + std::to_string(random()) + std::to_string(random()) + "\"}\n";
  }
  return text;
}

class preprocess_fault : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string add(const std::string& name, const std::string& contents) const {
    write_text(folder_ / name, contents);
    return path(name);
  }

  std::vector<std::string> command(const std::string& input,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {program("preprocess_data").string(),
                                    "--input",
                                    input,
                                    "--output-prefix",
                                    path("out"),
                                    "--tokenizer-type",
                                    "ByteLevelTokenizer"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  static program_options full_stdout() {
    program_options options;
    options.stdout_path = "/dev/full";
    return options;
  }

  static program_options ordinary_user() {
    program_options options;
    options.ordinary_user = true;
    return options;
  }

  std::filesystem::path prefix() const { return folder_ / "out_text_document"; }
  std::filesystem::path bin() const { return folder_ / "out_text_document.bin"; }
  std::filesystem::path idx() const { return folder_ / "out_text_document.idx"; }

  // Expects a one-line error message that starts with the name of the program and contains `part`.
  // A line that says which finished work was kept may precede the message.
  static void expect_sentence(const program_result& result, const std::string& part) {
    EXPECT_EQ(result.status, 1) << result.err;
    std::string said = result.err;
    if (said.starts_with("the finished work")) said.erase(0, said.find('\n') + 1);
    EXPECT_THAT(said, testing::AllOf(testing::StartsWith("preprocess_data: "),
                                     testing::HasSubstr(part), testing::EndsWith("\n")));
    EXPECT_EQ(said.find('\n'), said.size() - 1) << result.err;
    EXPECT_EQ(result.out, "");
  }

  // Number of files of one finished dataset: .bin, .idx, .meta, .sum, .src.
  static constexpr std::size_t dataset_files = 5;

  // Returns the names of all files in the folder that begin with "out".
  std::vector<std::string> outputs() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("out")) names.push_back(name);
    }
    return names;
  }

  // A folder in memory if possible, because preprocess_data syncs all files that it writes.
  temp_folder folder_{quick_folder()};
};

}  // namespace millrace::test
