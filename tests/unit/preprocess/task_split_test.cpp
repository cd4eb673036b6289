// SPDX-License-Identifier: Apache-2.0
#include "input/task_split.hpp"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "support/compressed.hpp"
#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t largest_part_bytes = std::uint64_t{8} << 20;

class TaskSplit : public testing::Test {
 protected:
  void add(const std::string& bytes) {
    const auto path = folder_ / std::to_string(names_.size());
    test::write_text(path, bytes);
    names_.push_back(path.string());
  }
  /// Returns where each task begins and where the last one ends. Checks that each share begins
  /// where the previous share ends.
  std::vector<text_place> boundaries(std::int64_t of) const {
    const auto inputs = names_.empty() ? std::vector<input_file>() : plan_inputs(names_);
    std::vector<text_place> places = {{0, 0}};
    for (std::int64_t index = 0; index < of; ++index) {
      const task_share share = share_of(inputs, {index, of}, largest_part_bytes);
      EXPECT_EQ(share.begin, places.back()) << index;
      places.push_back(share.end);
    }
    return places;
  }
  static std::vector<text_place> places(std::vector<text_place> wanted) { return wanted; }

  test::temp_folder folder_;
  std::vector<std::string> names_;
};

TEST_F(TaskSplit, CutsPlainFilesAnywhere) {
  add(std::string(10, '\n'));
  add("");
  add(std::string(20, '\n'));
  EXPECT_EQ(boundaries(1), places({{0, 0}, {3, 0}}));
  EXPECT_EQ(boundaries(2), places({{0, 0}, {2, 5}, {3, 0}}));
  EXPECT_EQ(boundaries(3), places({{0, 0}, {2, 0}, {2, 10}, {3, 0}}));
  EXPECT_EQ(boundaries(6), places({{0, 0}, {0, 5}, {2, 0}, {2, 5}, {2, 10}, {2, 15}, {3, 0}}));
}

TEST_F(TaskSplit, CutsBetweenFilesThatCanOnlyBeReadFromTheirFront) {
  const std::string compressed = test::gzip("{}\n");
  add(compressed);
  add("[" + std::string(compressed.size() - 3, ' ') + "]\n");
  EXPECT_EQ(boundaries(2), places({{0, 0}, {1, 0}, {2, 0}}));
  const auto eight = boundaries(8);
  EXPECT_EQ(eight[1], (text_place{0, 0})) << "nearer to the start";
  EXPECT_EQ(eight[3], (text_place{1, 0})) << "nearer to the end";
}

TEST_F(TaskSplit, CutsArchivesWhereTheirPartsMeet) {
  const std::string part(std::size_t{1} << 20, '\n');
  add(test::zstd(part) + test::zstd(part) + test::zstd(part));
  EXPECT_EQ(boundaries(3), places({{0, 0}, {0, part.size()}, {0, 2 * part.size()}, {1, 0}}));
}

TEST_F(TaskSplit, GivesEmptyFilesToOneTask) {
  add("");
  add("");
  EXPECT_EQ(boundaries(3), places({{0, 0}, {2, 0}, {2, 0}, {2, 0}}));
  const auto inputs = plan_inputs(names_);
  EXPECT_TRUE(share_of(inputs, {0, 3}, largest_part_bytes).has_start_of(1));
  EXPECT_FALSE(share_of(inputs, {1, 3}, largest_part_bytes).has_start_of(1));
}

TEST_F(TaskSplit, TakesNoInputAtAll) {
  EXPECT_EQ(boundaries(2), places({{0, 0}, {0, 0}, {0, 0}}));
}

TEST_F(TaskSplit, RefusesWhatCanBeReadOnlyOnce) {
  add("\n");
  names_.emplace_back("-");
  try {
    (void)share_of(plan_inputs(names_), {0, 2}, largest_part_bytes);
    ADD_FAILURE() << "tasks would share stdin";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("stdin"));
  }
}

TEST(TaskPrefix, SortsByName) {
  EXPECT_EQ(task_prefix("out/web", {3, 16}), "out/web_00003-of-00016");
}

// ---- --task ------------------------------------------------------------------------------------

using variables = std::map<std::string, std::string>;

task_id given(const std::string& flag, const variables& set = {}) {
  return task_of(flag, [&](const char* name) {
    const auto at = set.find(name);
    return at == set.end() ? nullptr : at->second.c_str();
  });
}

TEST(TaskFlag, IsATaskOfSoMany) {
  EXPECT_EQ(given("0/1"), (task_id{0, 1}));
  EXPECT_EQ(given("99998/99999"), (task_id{99998, 99999}));
  for (const char* wrong : {"", "1", "1/1", "-1/2", "0/0", "0/100000", "1/", "/2", "a/2", "1/2/3",
                            "1 /2", "0/-1", "99999999999999999999/2", "Slurm"}) {
    EXPECT_THROW((void)given(wrong), config_error) << wrong;
  }
}

TEST(TaskFlag, TakesSlurmsArraysAndThenItsProcesses) {
  const variables process = {{"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "3"}};
  EXPECT_EQ(given("slurm", process), (task_id{2, 3}));
  variables array = process;
  array.insert({{"SLURM_ARRAY_TASK_ID", "7"},
                {"SLURM_ARRAY_TASK_MIN", "5"},
                {"SLURM_ARRAY_TASK_MAX", "8"},
                {"SLURM_ARRAY_TASK_COUNT", "4"}});
  EXPECT_EQ(given("slurm", array), (task_id{2, 4}));
}

TEST(TaskFlag, SaysWhatIsWrongWithSlurmsNumbers) {
  const auto refused = [](const variables& set, const std::string& why) {
    try {
      (void)given("slurm", set);
      ADD_FAILURE() << "accepted, expected: " << why;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(why));
    }
  };
  refused({}, "neither SLURM_ARRAY_TASK_ID nor SLURM_PROCID is set");
  refused({{"SLURM_PROCID", "2"}}, "SLURM_NTASKS is not set");
  refused({{"SLURM_PROCID", "two"}, {"SLURM_NTASKS", "3"}}, "SLURM_PROCID is 'two'");
  refused({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "3"}}, "task 3 of 3");
  refused({{"SLURM_ARRAY_TASK_ID", "7"},
           {"SLURM_ARRAY_TASK_MIN", "5"},
           {"SLURM_ARRAY_TASK_MAX", "9"},
           {"SLURM_ARRAY_TASK_COUNT", "2"}},
          "from 5 to 9 but has 2 elements");
}

}  // namespace

namespace {

std::vector<input_file> files_of(std::size_t count, std::uint64_t bytes_each) {
  return std::vector<input_file>(count, {.path = "a", .size_bytes = bytes_each});
}

TEST(TaskCount, GrowsWithTheBytesOfAllInputsUpToALimit) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ(task_count({}), 1);
  EXPECT_EQ(task_count(files_of(3, 0)), 1);
  EXPECT_EQ(task_count(files_of(1, 63 * mebibyte)), 1);
  EXPECT_EQ(task_count(files_of(4, 16 * mebibyte)), 2);
  EXPECT_EQ(task_count(files_of(1000, 32 * mebibyte)), 1000);
  EXPECT_EQ(task_count(files_of(10, std::uint64_t{1} << 40)), 4096);
}

}  // namespace

}  // namespace millrace::preprocess
