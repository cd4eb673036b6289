// SPDX-License-Identifier: Apache-2.0
#include "run/worker_trials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include "output/committer.hpp"
#include "support/paths.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WorkerTrial, HasTheMedianOfItsRounds) {
  EXPECT_EQ(worker_trial({.workers = 1, .documents_per_second = {5, 1, 3}}).median(), 3);
  EXPECT_EQ(worker_trial({.workers = 1, .documents_per_second = {4, 1, 2, 9}}).median(), 3);
}

TEST(WorkerTrial, TriesPowersOfTwoAndAllProcessors) {
  EXPECT_THAT(usual_workers(1), ElementsAre(1));
  EXPECT_THAT(usual_workers(2), ElementsAre(1, 2));
  EXPECT_THAT(usual_workers(6), ElementsAre(1, 2, 4, 6));
  EXPECT_THAT(usual_workers(8), ElementsAre(1, 2, 4, 8));
}

class WorkerTrials : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "{\"text\": \"record " + std::to_string(i) + "\"}\n";
    run_.inputs = input(text);
    run_.output_prefix = folder_ / "out";
    run_.limits.block_bytes = 4096;
  }
  std::vector<input_file> input(const std::string& text) {
    const std::string path = (folder_ / "in.jsonl").string();
    test::write_text(path, text);
    return plan_inputs(std::vector<std::string>{path});
  }
  trial_report try_all(const trial_options& options) {
    return try_workers(*tokenizer_, run_, options,
                       [&](const std::string& line) { told_.push_back(line); });
  }
  void expect_no_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    EXPECT_THAT(names, ElementsAre("in.jsonl"));
  }

  const test::temp_folder folder_;
  const std::unique_ptr<tokenizer::tokenizer> tokenizer_ = test::byte_tokenizer();
  run_options run_;
  std::vector<std::string> told_;
};

// A trial ends with the block in which it reaches the number of documents.
TEST_F(WorkerTrials, EndAfterEnoughDocumentsAndLeaveNothing) {
  const trial_report report = try_all({.workers = {1, 2, 3}, .documents = 500, .rounds = 2});
  EXPECT_GE(report.documents, 500);
  EXPECT_LT(report.documents, 700);
  EXPECT_GT(report.least_seconds, 0);
  ASSERT_EQ(report.trials.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report.trials[i].documents_per_second.size(), 2U);
  }
  EXPECT_GE(report.trials[0].median(), report.trials[1].median());
  EXPECT_GE(report.trials[1].median(), report.trials[2].median());
  EXPECT_EQ(told_.size(), 6U);
  EXPECT_THAT(told_[3], HasSubstr("trial 4 of 6: 3 workers, ")) << "the second round runs backward";
  expect_no_files();
}

TEST_F(WorkerTrials, TakeAllDocumentsIfThereAreFewer) {
  const trial_report report = try_all({.workers = {2}, .documents = 5000, .rounds = 1});
  EXPECT_EQ(report.documents, 2000);
  EXPECT_THAT(describe(report),
              HasSubstr("fastest: --workers 2, with the first 2,000 documents\n"));
  EXPECT_THAT(to_json(report), HasSubstr("{\"fastest\": 2, \"documents\": 2000, \"trials\": "));
}

// Files of an unfinished run at the prefix stay as they are.
TEST_F(WorkerTrials, DoNotTouchTheFilesAtThePrefix) {
  for (const char* name :
       {"out.journal", "out_text_document.bin", "out_text_document.bin.partial"}) {
    test::write_text(folder_ / name, "old");
  }
  (void)try_all({.workers = {1}, .documents = 100, .rounds = 1});
  for (const char* name :
       {"out.journal", "out_text_document.bin", "out_text_document.bin.partial"}) {
    EXPECT_EQ(test::read_text(folder_ / name), "old") << name;
  }
}

TEST_F(WorkerTrials, FailAsTheRunWouldAndLeaveNothing) {
  run_.inputs = input("{\"text\": \"a\"}\nno JSON\n");
  EXPECT_THROW((void)try_all({.workers = {1}}), bad_record_error);
  expect_no_files();
}

TEST_F(WorkerTrials, StopOnASignalAndLeaveNothing) {
  const std::atomic<int> signal = SIGTERM;
  run_.stop = &signal;
  try {
    (void)try_all({.workers = {1, 2}});
    ADD_FAILURE();
  } catch (const stopped& e) {
    EXPECT_STREQ(e.what(), "stopped by SIGTERM: the trials were removed");
  }
  EXPECT_THAT(told_, testing::IsEmpty());
  expect_no_files();
}

TEST_F(WorkerTrials, RefuseAPipe) {
  run_.inputs = plan_inputs(std::vector<std::string>{"-"});
  EXPECT_THROW((void)try_all({.workers = {1}}), config_error);
}

}  // namespace
}  // namespace millrace::preprocess
