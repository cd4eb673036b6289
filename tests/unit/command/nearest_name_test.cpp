// SPDX-License-Identifier: Apache-2.0
#include <millrace/command/nearest_name.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::command {
namespace {

const std::vector<std::string> names = {"input", "output-prefix", "overwrite", "workers",
                                        "json",  "json-keys",     "task"};

TEST(EditDistance, CountsLettersToChange) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2U);
}

TEST(NearestName, IsTheShortestThatBeginsSoOrTheNearest) {
  EXPECT_EQ(nearest_name("output", names), "output-prefix");
  EXPECT_EQ(nearest_name("js", names), "json");
  EXPECT_EQ(nearest_name("json_keys", names), "json-keys");
  EXPECT_EQ(nearest_name("worker", names), "workers");
  EXPECT_EQ(nearest_name("wrokers", names), "workers");
  EXPECT_EQ(nearest_name("tasks", names), "task");
}

TEST(NearestName, IsNothingWhereNoneIsLikeIt) {
  EXPECT_EQ(nearest_name("no-such-flag", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("tsk", names), "task");
  EXPECT_EQ(nearest_name("tk", names), "");
  EXPECT_EQ(nearest_name("input", {}), "");
}

}  // namespace
}  // namespace millrace::command
