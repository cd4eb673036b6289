// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::good_lines;

/// Each input has 20 short lines, one line of 64 MB, and 20 more short lines.
class ResumeGiant : public test::resume_fault {
 protected:
  static constexpr std::uintmax_t some_of_it = 2'000'000;  // bytes; the first 20 lines give fewer

  ResumeGiant() {
    std::string words;
    while (words.size() < 64'000'000) words += "some words, \\u00e9 and \\n more of them; ";
    giant_ = "{\"text\": \"" + words + "\", \"title\": \"\"}";
  }

  std::string as_lines() const { return good_lines(0, 20) + giant_ + "\n" + good_lines(20, 40); }
  std::string as_array() const {
    std::string text = "[";
    for (char c : as_lines()) text += c == '\n' ? ',' : c;
    text.back() = ']';
    return text;
  }

  std::uintmax_t written() const {
    std::error_code none;
    const std::uintmax_t bytes = fs::file_size(partial("bin"), none);
    return none ? 0 : bytes;
  }

  // Starts a run and sends SIGTERM when `due` returns true. Starts again if the run ends before the
  // signal.
  test::program_result stopped_when(const std::function<bool()>& due) {
    for (int attempt = 0; attempt < 20; ++attempt) {
      empty_out();
      test::running_program program(command());
      while (!due() && !program.ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      program.send(SIGTERM);
      auto result = program.wait();
      if (result.status == test::stopped &&
          result.err.find("stopped, with 20 documents safe") != result.err.npos) {
        return result;
      }
    }
    return {};
  }

  void expect_left_to_the_next_run() {
    const file_set wanted = undisturbed();
    const auto result = stopped_when([this] { return written() > some_of_it; });
    EXPECT_EQ(result.status, test::stopped) << "the line was never given up";
    EXPECT_LT(written(), some_of_it);  // no tokens of the long line are kept
    const auto again = run({"--resume"}, {});
    ASSERT_EQ(again.status, 0) << again.err;
    expect_files(wanted);
  }

  std::string giant_;
};

TEST_F(ResumeGiant, ASignalDoesNotWaitForTheEndOfALine) {
  add("a.jsonl", as_lines());
  expect_left_to_the_next_run();
}

// The stopped run commits the bad records before the long line. The resumed run does not report
// them again, so the stopped run must report them.
TEST_F(ResumeGiant, BadRecordsBeforeItAreToldAllTheSame) {
  add("a.jsonl", good_lines(0, 20) + "{broken\n" + giant_ + "\n");
  flags_ = {"--json-keys", "text", "title", "--on-bad-record", "skip"};
  const auto result = stopped_when([this] { return written() > some_of_it; });
  ASSERT_EQ(result.status, test::stopped) << "the line was never given up";
  EXPECT_NE(result.err.find("a.jsonl:21 "), std::string::npos) << result.err;
}

TEST_F(ResumeGiant, NorForOneOfAnArchive) {
  add("a.jsonl.zst", test::zstd(as_lines()));
  expect_left_to_the_next_run();
}

TEST_F(ResumeGiant, NorForAnElementOfAnArray) {
  add("a.json", as_array());
  expect_left_to_the_next_run();
}

// The signals come at different moments. When a signal comes, the run may be looking for the end of
// the long line, checking the line, or encoding it.
TEST_F(ResumeGiant, SignalsAtAnyTimeLoseNothing) {
  add("a.jsonl", as_lines());
  const auto start = std::chrono::steady_clock::now();
  const file_set wanted = undisturbed();
  const auto whole_run = std::chrono::steady_clock::now() - start;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    empty_out();
    {
      test::running_program program(command());
      std::this_thread::sleep_for(whole_run * round / 6);
      program.send(SIGUSR1);
      // A very early signal comes before the program handles signals.
      const int status = program.wait().status;
      EXPECT_TRUE(status == test::stopped || status == 0 || status == 128 + SIGUSR1) << status;
      expect_nothing_half(wanted);
    }
    const auto result = run({"--resume"}, {});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

}  // namespace
}  // namespace millrace::preprocess
