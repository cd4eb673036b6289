// SPDX-License-Identifier: Apache-2.0
#include "watch/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

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

// Progress waits for the interval that the user chose in documents, even if documents are slow.
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
}  // namespace millrace::preprocess
