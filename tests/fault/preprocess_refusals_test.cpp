// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "support/compressed.hpp"
#include "support/preprocess_fault.hpp"

/// Tests outputs that cannot be created, and damaged inputs. The error message must name the first
/// problem.
namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::random_records;
using test::records;
using PreprocessRefusals = test::preprocess_fault;

TEST_F(PreprocessRefusals, NamesAnOutputFolderThatIsNotThere) {
  auto arguments = command(add("in.jsonl", records(1, "a")));
  arguments[4] = path("none/out");
  expect_sentence(test::run_program(arguments), "--output-prefix " + path("none/out"));
}

TEST_F(PreprocessRefusals, NamesAnOutputFolderThatIsNone) {
  const std::string input = add("in.jsonl", records(1, "a"));
  auto arguments = command(input);
  arguments[4] = input + "/out";
  expect_sentence(test::run_program(arguments), input);
}

TEST_F(PreprocessRefusals, NamesAnOutputFolderThatRefuses) {
  auto arguments = command(add("in.jsonl", records(1, "a")));
  arguments[4] = "/proc/out";  // nobody can create files in /proc, not even root
  expect_sentence(test::run_program(arguments), "/proc/out");
}

TEST_F(PreprocessRefusals, NamesAnOutputFolderThatMayNotBeWritten) {
  fs::create_directory(folder_ / "locked");
  fs::permissions(folder_ / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  auto arguments = command(add("in.jsonl", records(1, "a")));
  arguments[4] = path("locked/out");
  const auto result = test::run_program(arguments, ordinary_user());
  if (result.status == test::cannot_become) GTEST_SKIP() << "cannot become an ordinary user";
  expect_sentence(result, path("locked"));
}

// The run must fail. Otherwise, the dataset would silently lack the files in the unreadable folder.
TEST_F(PreprocessRefusals, NamesAPatternThatMeetsAFolderThatMayNotBeRead) {
  for (const char* name : {"g", "g/1", "g/2", "g/3"}) fs::create_directory(folder_ / name);
  for (const char* name : {"g/1/x.jsonl", "g/2/x.jsonl", "g/3/x.jsonl"}) add(name, records(1, "a"));
  for (const char* pattern : {"g/*/x.jsonl", "g/*/*.jsonl"}) {
    SCOPED_TRACE(pattern);
    fs::permissions(folder_ / "g/2", fs::perms::none);
    const auto result = test::run_program(command(path(pattern)), ordinary_user());
    fs::permissions(folder_ / "g/2", fs::perms::owner_all);
    if (result.status == test::cannot_become) GTEST_SKIP() << "cannot become an ordinary user";
    expect_sentence(result, path("g/"));
    EXPECT_TRUE(outputs().empty());
  }
}

TEST_F(PreprocessRefusals, NamesAnOutputThatIsAFolder) {
  fs::create_directory(idx());
  const std::string input = add("in.jsonl", records(1, "a"));
  expect_sentence(test::run_program(command(input, {"--overwrite"})), idx().string());
  EXPECT_EQ(outputs().size(), 1U);
}

TEST_F(PreprocessRefusals, TellsThatDescriptorsRanOut) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, and takes their lack for a fault";
#endif
  const std::string input = add("in.jsonl", records(1, "a"));
  std::vector<std::string> more = {"--json-keys"};
  for (int key = 0; key < 30; ++key) more.push_back("key" + std::to_string(key));
  test::program_options options;
  options.descriptors = 20;
  expect_sentence(test::run_program(command(input, more), options),
                  std::generic_category().message(EMFILE));
  EXPECT_TRUE(outputs().empty());
}

// Eight bad records are spread over ten blocks (the units of work), which seven workers process.
// The message must always name the first bad record, no matter which worker is the fastest.
TEST_F(PreprocessRefusals, NamesTheFirstBadRecordEveryTime) {
  std::string text = records(30'000, "good");
  text += "{\"text\": \"good\"}\n[\"first\"]\n";
  const std::size_t first = text.size() - 10;
  for (int i = 0; i < 7; ++i)
    text += "{\"other\": " + std::to_string(i) + "}\n" + records(10'000, "g");
  const std::string input = add("in.jsonl", text);
  const std::string place = input + ":30002 (byte " + std::to_string(first) + "): ";
  for (int round = 0; round < 20; ++round) {
    expect_sentence(test::run_program(command(input, {"--workers=7", "--overwrite"})), place);
    ASSERT_FALSE(fs::exists(bin()) || fs::exists(idx()));
    if (HasFailure()) return;
  }
}

// The message must name the first problem in the input, even with several threads.
TEST_F(PreprocessRefusals, NamesABadRecordBeforeADamagedPlaceBehindIt) {
  const std::string compressed = test::gzip("{\"text\": 1}\n" + random_records(100'000));
  const std::string input = add("in.jsonl.gz", compressed.substr(0, compressed.size() - 1000));
  for (int round = 0; round < 5; ++round) {
    expect_sentence(test::run_program(command(input, {"--workers=7", "--overwrite"})),
                    input + ":1 (byte 9): ");
    EXPECT_FALSE(fs::exists(bin()) || fs::exists(idx()));
  }
}

TEST_F(PreprocessRefusals, NamesADamagedPlaceBeforeABadRecordBehindIt) {
  const std::string compressed = test::gzip(random_records(100'000));
  const std::string cut = add("1.jsonl.gz", compressed.substr(0, compressed.size() / 2));
  const std::string bad = add("2.jsonl", "{\"text\": 1}\n");
  for (int round = 0; round < 5; ++round) {
    expect_sentence(test::run_program(command(cut, {"--input", bad, "--workers=7", "--overwrite"})),
                    cut + ": ");
    EXPECT_FALSE(fs::exists(bin()) || fs::exists(idx()));
  }
}

// `--on-bad-record=skip` skips bad records. It must not skip the rest of a damaged file.
TEST_F(PreprocessRefusals, SkipsNoDamagedFile) {
  const std::string compressed = test::zstd(random_records(50'000));
  const std::string cut = add("in.zst", compressed.substr(0, compressed.size() / 2));
  expect_sentence(test::run_program(command(cut, {"--on-bad-record=skip"})), cut + ": ");
  EXPECT_FALSE(fs::exists(bin()) || fs::exists(idx()));
}

}  // namespace
}  // namespace millrace::preprocess
