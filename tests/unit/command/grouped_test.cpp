// SPDX-License-Identifier: Apache-2.0
#include <millrace/command/grouped.hpp>

#include <gtest/gtest.h>

#include <limits>

namespace millrace::command {
namespace {

TEST(Grouped, PutsACommaBeforeEachThreeDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(34386381), "34,386,381");
  EXPECT_EQ(grouped(-100), "-100");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(std::numeric_limits<std::int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(Grouped, CountsANoun) {
  EXPECT_EQ(grouped(1, "token"), "1 token");
  EXPECT_EQ(grouped(0, "token"), "0 tokens");
  EXPECT_EQ(grouped(12345, "token"), "12,345 tokens");
}

}  // namespace
}  // namespace millrace::command
