// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/preprocess_fault.hpp"
#include "support/preprocess_files.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::records;
using testing::HasSubstr;
using clock = std::chrono::steady_clock;
using PreprocessFault = test::preprocess_fault;

// --overwrite must leave the old pair of files, the new pair, or no pair. The dangerous moment is
// right after the old index is removed. A third of the kills come at this moment, the others at
// random times.
TEST_F(PreprocessFault, AKillLeavesTheOldPairTheNewPairOrNone) {
  const std::string old_input = add("old.jsonl", records(500, "old"));
  const std::string new_input = add("new.jsonl", records(3000, "new"));
  ASSERT_EQ(test::run_program(command(old_input)).status, 0);
  const auto old_pair = test::read_dataset(prefix());
  const auto start = clock::now();
  ASSERT_EQ(test::run_program(command(new_input, {"--overwrite"})).status, 0);
  const auto whole_run = clock::now() - start;
  const auto new_pair = test::read_dataset(prefix());
  ASSERT_FALSE(old_pair == new_pair);

  std::mt19937_64 random(test::seed(51));
  int killed = 0;
  int without = 0;
  for (int round = 0; round < 60; ++round) {
    test::write_text(bin(), old_pair.bin);
    test::write_text(idx(), old_pair.idx);
    test::running_program program(command(new_input, {"--overwrite"}));
    if (round % 3 == 0) {
      while (fs::exists(idx()) && !program.ended()) {
      }
    } else {
      std::this_thread::sleep_for(whole_run * static_cast<int>(random() % 1200) / 1000);
    }
    program.kill();
    killed += program.wait().status == 128 + SIGKILL ? 1 : 0;

    if (fs::exists(idx())) {
      ASSERT_TRUE(fs::exists(bin())) << "an .idx without its .bin in round " << round;
      const auto found = test::read_dataset(prefix());
      ASSERT_TRUE(found == old_pair || found == new_pair) << "a mix in round " << round;
    } else {
      ++without;
    }
    if (round % 4 == 0) {
      const auto again = test::run_program(command(new_input, {"--overwrite"}));
      ASSERT_EQ(again.status, 0) << again.err;
      ASSERT_TRUE(test::read_dataset(prefix()) == new_pair);
      ASSERT_EQ(outputs().size(), dataset_files) << "what the killed run left is used up";
    }
  }
  std::cout << killed << " of 60 killed, " << without << " left no pair\n";
  EXPECT_GE(killed, 10);
}

// The disk fills up while the run writes the tokens, or later, when it writes the index. As soon as
// there is space, the run can be resumed.
TEST_F(PreprocessFault, AFullDiskLeavesTheOldPairAndWhatWasDone) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "{\"text\": \"ab\"}\n";
  const std::string input = add("in.jsonl", text);
  ASSERT_EQ(test::run_program(command(input)).status, 0);
  const auto wanted = test::read_dataset(prefix());
  for (const ::rlim_t limit : {40'000U, 150'000U, 350'000U}) {
    SCOPED_TRACE(limit);
    test::write_text(bin(), "old bin");
    test::write_text(idx(), "old idx");
    test::program_options options;
    options.file_size = limit;
    expect_sentence(test::run_program(command(input, {"--overwrite"}), options),
                    std::generic_category().message(EFBIG));
    EXPECT_EQ(test::read_text(bin()), "old bin");
    EXPECT_EQ(test::read_text(idx()), "old idx");
    if (!fs::exists(path("out.journal"))) {
      EXPECT_EQ(outputs().size(), dataset_files) << "nothing was done, and nothing is left";
      continue;
    }
    expect_sentence(test::run_program(command(input)), "pass --resume to continue it");
    const auto resumed = test::run_program(command(input, {"--resume"}));
    EXPECT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_TRUE(test::read_dataset(prefix()) == wanted);
    EXPECT_EQ(outputs().size(), dataset_files);
  }
}

// If the JSON output cannot be written, the script that requested it must see a failure.
TEST_F(PreprocessFault, FailsIfTheAnswerCannotBeWritten) {
  const std::string input = add("in.jsonl", records(10, "a"));
  const auto result = test::run_program(command(input, {"--json"}), full_stdout());
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("preprocess_data: stdout: write: "));
}

TEST_F(PreprocessFault, FailsIfTheHelpCannotBeWritten) {
  for (const char* flag : {"--help", "--version"}) {
    const auto result =
        test::run_program({test::program("preprocess_data").string(), flag}, full_stdout());
    EXPECT_EQ(result.status, 1) << flag;
    EXPECT_THAT(result.err, HasSubstr("preprocess_data: stdout: write: ")) << flag;
  }
}

// Messages that cannot be written are lost. This must affect neither the output files nor the exit
// code.
TEST_F(PreprocessFault, EndsAlikeIfNobodyCanBeTold) {
  test::program_options full;
  full.stderr_path = "/dev/full";
  const std::string good = add("good.jsonl", records(10, "a"));
  EXPECT_EQ(test::run_program(command(good), full).status, 0);
  EXPECT_EQ(outputs().size(), dataset_files);
  EXPECT_EQ(test::run_program(command(good), full).status, 1) << "the output exists";
  EXPECT_EQ(test::run_program(command(good, {"--nonsense"}), full).status, 2);
}

// If stderr is closed, a file that the program opens can get the descriptor number of stderr.
// Messages must not be written to this file.
TEST_F(PreprocessFault, WritesNoMessageIntoAFileWhereStreamsAreClosed) {
  const std::string input = add("in.jsonl", "bad\n" + records(10, "a") + "bad\n");
  ASSERT_EQ(test::run_program(command(input, {"--on-bad-record=skip"})).status, 0);
  const auto wanted = test::read_dataset(prefix());
  test::program_options closed;
  closed.closed_streams = true;
  const auto arguments = command(input, {"--on-bad-record=skip", "--overwrite"});
  EXPECT_EQ(test::run_program(arguments, closed).status, 0);
  EXPECT_TRUE(test::read_dataset(prefix()) == wanted);
  auto with_answer = arguments;
  with_answer.push_back("--json");
  EXPECT_EQ(test::run_program(with_answer, closed).status, 1) << "nobody got the answer";
}

// A user may start the same job twice by mistake. The output must not mix both runs.
TEST_F(PreprocessFault, RefusesASecondRunOnOnePrefix) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const std::string input = add("in.jsonl", records(10, "second"));
  test::running_program first(command(path("fifo")));
  std::ofstream feed(path("fifo"));  // blocks until the first run opens the FIFO
  feed << records(5, "first") << std::flush;
  const auto give_up = clock::now() + std::chrono::seconds(30);
  // A run opens the .idx after it locked the .bin.
  while (!fs::exists(idx().string() + ".partial") && clock::now() < give_up) {
  }

  expect_sentence(test::run_program(command(input)), "another process");
  expect_sentence(test::run_program(command(input, {"--overwrite"})), "another process");
  feed << records(5, "first") << std::flush;
  feed.close();
  const auto result = first.wait();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(outputs().size(), dataset_files);
  EXPECT_THAT(test::read_text(bin()), HasSubstr(std::string("f\0i\0r\0s\0t\0", 10)));
}

// `program <(decompressor)` and `decompressor > fifo &` make the program read from a FIFO. The run
// must read every byte.
TEST_F(PreprocessFault, ReadsAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  const std::string text = records(5000, "piped");
  ASSERT_EQ(test::run_program(command(add("in.jsonl", text))).status, 0);
  const auto wanted = test::read_dataset(prefix());
  test::running_program program(command(path("fifo"), {"--overwrite"}));
  std::ofstream(path("fifo")) << text;
  EXPECT_EQ(program.wait().status, 0);
  EXPECT_TRUE(test::read_dataset(prefix()) == wanted);
}

// Tasks are killed several times and run again with --resume. The merge of their outputs must equal
// the output of one process.
TEST_F(PreprocessFault, KilledTasksGoOnAndMergeIntoWhatOneProcessWrites) {
  const std::string input = add("in.jsonl", records(2000, "word") + "no JSON\n");
  const std::string policy = "--on-bad-record=quarantine";
  ASSERT_EQ(test::run_program(command(input, {policy})).status, 0);
  std::mt19937_64 random(test::seed(53));
  int killed = 0;
  fs::create_directory(folder_ / "parts");
  for (const char* task : {"0/3", "1/3", "2/3"}) {
    auto arguments = command(input, {policy, "--resume", "--task", task});
    arguments[4] = path("parts/out");
    for (int kills = 0; kills < 6; ++kills) {
      test::running_program program(arguments);
      const unsigned most_ms = kills < 3 ? 8 : 40;  // a fast machine ends a run within 20 ms
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % most_ms));
      program.kill();
      killed += program.wait().status == 128 + SIGKILL ? 1 : 0;
    }
    const auto last = test::run_program(arguments);
    ASSERT_EQ(last.status, 0) << last.err;
  }
  EXPECT_GE(killed, 3);
  const auto merged = test::run_program({test::program("merge_datasets").string(), "--input",
                                         path("parts"), "--output-prefix", path("merged")});
  ASSERT_EQ(merged.status, 0) << merged.err;
  for (const char* suffix : {".bin", ".idx", ".meta", ".sum", ".src", ".bad"}) {
    EXPECT_TRUE(test::read_text(path("merged") + suffix) ==
                test::read_text(prefix().string() + suffix))
        << suffix;
  }
}

}  // namespace
}  // namespace millrace::preprocess
