// SPDX-License-Identifier: Apache-2.0
#include "report/progress.hpp"

#include <chrono>
#include <limits>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::preprocess {
namespace {

using testing::IsEmpty;
using testing::MatchesRegex;
using style = progress::style;

constexpr std::chrono::milliseconds over_a_second{1050};

class Progress : public testing::Test {
 protected:
  void SetUp() override { testing::internal::CaptureStderr(); }
  void TearDown() override {
    if (!taken_) (void)said();
  }
  std::string said() {
    taken_ = true;
    return testing::internal::GetCapturedStderr();
  }
  bool taken_ = false;
};

// Progress lines contain Megatron's sentence, because scripts that watch Megatron's log search for
// it.
TEST_F(Progress, SaysMegatronsSentence) {
  progress p(style::lines, 100, 0);
  std::this_thread::sleep_for(over_a_second);
  p.update({.documents = 1234, .input_bytes = 5'000'000});
  EXPECT_THAT(said(), MatchesRegex("Processed 1234 documents \\([0-9]+\\.[0-9]+ docs/s, "
                                   "[0-9]+\\.[0-9]+ MB/s\\)\\.\n"));
}

// The token rate, which Megatron does not report, follows Megatron's sentence.
TEST_F(Progress, SaysTokensBehindMegatronsSentence) {
  progress p(style::lines, 100, 0);
  std::this_thread::sleep_for(over_a_second);
  p.update({.documents = 1234, .input_bytes = 5'000'000, .tokens = 1'000'000});
  EXPECT_THAT(said(), MatchesRegex("Processed 1234 documents \\([0-9]+\\.[0-9]+ docs/s, "
                                   "[0-9]+\\.[0-9]+ MB/s\\)\\. [0-9]+ tokens/s\\.\n"));
}

TEST_F(Progress, IsQuietInTheFirstSecond) {
  progress p(style::lines, 1, 0);
  for (int i = 0; i < 1000; ++i) p.update({.documents = i, .input_bytes = 10});
  p.close();
  EXPECT_THAT(said(), IsEmpty());
}

// The user chooses the number of documents between two progress lines. No line is printed earlier,
// even if the documents are slow.
TEST_F(Progress, WaitsForTheIntervalOfDocuments) {
  progress p(style::lines, 1000, 0);
  std::this_thread::sleep_for(over_a_second);
  p.update({.documents = 999});
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Progress, SaysNothingWhereItIsSilent) {
  progress p(style::silent, 1, 100);
  std::this_thread::sleep_for(over_a_second);
  p.update({.documents = 5000, .input_bytes = 1, .read_bytes = 100});
  p.close();
  EXPECT_THAT(said(), IsEmpty());
}

TEST_F(Progress, WritesANoteAtOnceAndAsItIs) {
  progress p(style::lines, 1, 0);
  p.note("in.jsonl:1 (byte 0): {} %s");
  EXPECT_EQ(said(), "in.jsonl:1 (byte 0): {} %s\n");
}

// The bar must be drawn properly if it is full, or if the total is too small or unknown.
TEST_F(Progress, DrawsABarAtAnyPart) {
  progress known(style::bar, 1, 100);
  progress unknown(style::bar, 1, 0);
  for (const std::uint64_t read : {0U, 50U, 100U, 300U}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(210));
    known.update({.documents = 10, .input_bytes = 1000, .read_bytes = read});
  }
  unknown.update({.documents = 10, .input_bytes = 1000, .read_bytes = 50});
  const std::string text = said();
  EXPECT_THAT(text, testing::HasSubstr(" 50%"));
  EXPECT_THAT(text, testing::HasSubstr("100%"));
  EXPECT_THAT(text, testing::HasSubstr("10 documents"));
  EXPECT_THAT(text,
              testing::Not(testing::AnyOf(testing::HasSubstr("nan"), testing::HasSubstr("inf"),
                                          testing::HasSubstr("300%"))));
  EXPECT_EQ(text.find('\n'), std::string::npos) << "a bar stays on its line";
}

TEST_F(Progress, ShowsWhatTimeIsLeft) {
  progress p(style::bar, 1, 1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  p.update({.documents = 10, .input_bytes = 1000, .read_bytes = 100, .tokens = 50});
  const std::string text = said();
  EXPECT_THAT(text, MatchesRegex(".* ([5-9]|1[0-9]) s left")) << "nine times half a second or more";
  EXPECT_THAT(text, testing::HasSubstr(" tokens/s "));
}

TEST_F(Progress, RemovesTheBarBeforeANoteAndAtTheEnd) {
  progress p(style::bar, 1, 100);
  p.note("note");
  p.close();
  EXPECT_EQ(said(), "\r\033[Knote\n\r\033[K");
}

// If a run ends early, the bar is removed, so that the error is on a line of its own.
TEST_F(Progress, RemovesTheBarWhereARunEndsEarly) {
  { const progress p(style::bar, 1, 100); }
  EXPECT_EQ(said(), "\r\033[K");
}

}  // namespace

namespace {

using testing::HasSubstr;
using testing::Not;

bar_view example_view() {
  return {.documents = 1234567,
          .megabytes_rate = 81.23,
          .documents_rate = 3214,
          .tokens_rate = 19.8e6,
          .done = 0.5,
          .seconds_left = 83};
}

TEST(BarLine, ShowsEverythingWhereThereIsRoom) {
  EXPECT_EQ(
      bar_line(example_view(), 100),
      "[===============>               ]  50%  81.2 MB/s  3214 docs/s  19.8M tokens/s  1:23 left");
}

TEST(BarLine, CountsDocumentsWhereThePartIsNotKnown) {
  bar_view view = example_view();
  view.done.reset();
  view.seconds_left.reset();
  EXPECT_EQ(bar_line(view, 100), "1234567 documents  81.2 MB/s  3214 docs/s  19.8M tokens/s");
}

// If a line wrapped, each update would leave the beginning of that line on the screen.
TEST(BarLine, NeverReachesTheLastColumn) {
  bar_view unknown = example_view();
  unknown.done.reset();
  for (std::size_t columns = 0; columns <= 200; ++columns) {
    for (const bar_view& view : {example_view(), unknown, bar_view{}}) {
      EXPECT_LT(bar_line(view, columns).size(), columns == 0 ? 1 : columns) << columns;
    }
  }
}

TEST(BarLine, LeavesOutTheLeastWantedFirst) {
  const std::string at_66 = bar_line(example_view(), 66);
  EXPECT_THAT(at_66, HasSubstr("19.8M tokens/s"));
  EXPECT_THAT(at_66, Not(HasSubstr("docs/s")));
  EXPECT_THAT(at_66, HasSubstr("[=="));
  const std::string at_30 = bar_line(example_view(), 30);
  EXPECT_EQ(at_30, " 50%  81.2 MB/s  1:23 left");
  EXPECT_EQ(bar_line(example_view(), 8), " 50%");
}

TEST(BarLine, StaysABarOutsideOfItsPart) {
  bar_view view = example_view();
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

namespace {

TEST(SmoothedRate, IsZeroBeforeAnything) {
  smoothed_rate rate;
  EXPECT_EQ(rate.per_second(), 0);
  rate.update(100, 0);
  EXPECT_EQ(rate.per_second(), 0);
}

TEST(SmoothedRate, IsTheRateFromTheFirstMomentOn) {
  smoothed_rate rate;
  for (int i = 1; i <= 100; ++i) {
    rate.update(7.0 * i, i);
    EXPECT_NEAR(rate.per_second(), 7, 1e-9) << i;
  }
}

// Ten seconds after the run stops making progress, the rate is half of the old rate, whatever the
// number of updates.
TEST(SmoothedRate, ForgetsHalfInTenSeconds) {
  for (const int steps : {1, 10, 1000}) {
    smoothed_rate rate;
    rate.update(1e6, 1000);  // 1000 per second, for so long that nothing earlier counts
    for (int i = 1; i <= steps; ++i) rate.update(1e6, 1000 + 10.0 * i / steps);
    EXPECT_NEAR(rate.per_second(), 500, 1e-6) << steps;
  }
}

TEST(SmoothedRate, TakesTheSameMomentTwice) {
  smoothed_rate rate;
  rate.update(10, 1);
  rate.update(30, 1);
  EXPECT_DOUBLE_EQ(rate.per_second(), 10);
}

}  // namespace

}  // namespace millrace::preprocess
