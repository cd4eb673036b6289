// SPDX-License-Identifier: Apache-2.0
#include "watch/bar_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace millrace::preprocess {
namespace {

using testing::HasSubstr;
using testing::Not;

bar_view example() {
  return {.documents = 1234567,
          .megabytes_rate = 81.23,
          .documents_rate = 3214,
          .tokens_rate = 19.8e6,
          .done = 0.5,
          .seconds_left = 83};
}

TEST(BarLine, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(
      bar_line(example(), 100),
      "[===============>               ]  50%  81.2 MB/s  3214 docs/s  19.8M tokens/s  1:23 left");
}

TEST(BarLine, CountsDocumentsWhereThePartIsNotKnown) {
  bar_view view = example();
  view.done.reset();
  view.seconds_left.reset();
  EXPECT_EQ(bar_line(view, 100), "1234567 documents  81.2 MB/s  3214 docs/s  19.8M tokens/s");
}

// If a line wrapped, each update would leave the beginning of that line on the screen.
TEST(BarLine, NeverReachesTheLastColumn) {
  bar_view unknown = example();
  unknown.done.reset();
  for (std::size_t columns = 0; columns <= 200; ++columns) {
    for (const bar_view& view : {example(), unknown, bar_view{}}) {
      EXPECT_LT(bar_line(view, columns).size(), columns == 0 ? 1 : columns) << columns;
    }
  }
}

TEST(BarLine, LeavesOutTheLeastWantedFirst) {
  const std::string at_66 = bar_line(example(), 66);
  EXPECT_THAT(at_66, HasSubstr("19.8M tokens/s"));
  EXPECT_THAT(at_66, Not(HasSubstr("docs/s")));
  EXPECT_THAT(at_66, HasSubstr("[=="));
  const std::string at_30 = bar_line(example(), 30);
  EXPECT_EQ(at_30, " 50%  81.2 MB/s  1:23 left");
  EXPECT_EQ(bar_line(example(), 8), " 50%");
}

TEST(BarLine, StaysABarOutsideOfItsPart) {
  bar_view view = example();
  view.done = 3;
  EXPECT_THAT(bar_line(view, 100), HasSubstr("=>] 100%"));
  view.done = -1;
  EXPECT_THAT(bar_line(view, 100), HasSubstr("[> "));
}

TEST(ShortNumber, HasThreeDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(-3), "0");
  EXPECT_EQ(short_number(0.4), "0");
  EXPECT_EQ(short_number(9999), "9999");
  EXPECT_EQ(short_number(9999.6), "10.0k");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(999499), "999k");
  EXPECT_EQ(short_number(999500), "1.00M");
  EXPECT_EQ(short_number(123456789), "123M");
  EXPECT_EQ(short_number(4.56e9), "4.56G");
  EXPECT_EQ(short_number(2e15), "2.00P");
  EXPECT_EQ(short_number(std::numeric_limits<double>::quiet_NaN()), "0");
}

TEST(ShortDuration, ReadsAsAClock) {
  EXPECT_EQ(short_duration(0), "0 s");
  EXPECT_EQ(short_duration(59.4), "59 s");
  EXPECT_EQ(short_duration(59.6), "1:00");
  EXPECT_EQ(short_duration(3599), "59:59");
  EXPECT_EQ(short_duration(3600), "1:00:00");
  EXPECT_EQ(short_duration(27 * 3600 + 5), "27:00:05");
  EXPECT_EQ(short_duration(1e300), "10000:00:00");
}

}  // namespace
}  // namespace millrace::preprocess
