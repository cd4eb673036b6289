// SPDX-License-Identifier: Apache-2.0
#include "mpi/mpi_fixture.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <iostream>

#include "merge/content_key.hpp"
#include "support/child_process.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::strings;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class MpiJob : public test::mpi_job {};
using test::program;

// The main invariant: any number of ranks writes the same bytes as one process.
TEST_F(MpiJob, AnyNumberOfRanksWritesTheBytesOfOneProcess) {
  add_dirty_inputs(40);
  const file_set wanted = undisturbed();
  ASSERT_EQ(wanted.size(), 12U);  // two keys: .bin .idx .meta .sum .src .bad
  for (const int ranks : {1, 2, 3, 7, 16}) {
    SCOPED_TRACE(std::to_string(ranks) + " ranks");
    empty_out();
    const auto result = run_job(ranks, 11);
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

TEST_F(MpiJob, AnyNumberOfTasksGivesTheBytesOfOneProcess) {
  add_dirty_inputs(40);
  for (const char* policy : {"skip", "quarantine"}) {
    flags_.back() = policy;
    const file_set wanted = undisturbed();
    int ranks = 1;
    for (const int tasks : {1, 2, 3, 7, 16}) {
      SCOPED_TRACE(std::string(policy) + ", " + std::to_string(tasks) + " tasks");
      empty_out();
      const auto result = run_job(1 + ranks++ % 4, tasks);
      ASSERT_EQ(result.status, 0) << result.err;
      expect_files(wanted);
    }
  }
}

// The sizes of the parts vary: some checksum blocks of P.sum cover many parts, and some parts cover
// several blocks.
TEST_F(MpiJob, LargePartsAreSummedAsOneProcessSumsThem) {
  std::string text;
  for (int i = 0; i < 6000; ++i) {
    text +=
        "{\"text\": \"" + std::string(random_() % 1200, static_cast<char>('a' + i % 26)) + "\"}\n";
  }
  add("large.jsonl", text);
  const file_set wanted = undisturbed();
  ASSERT_GT(wanted.at("x_text_document.bin").size(), std::size_t{6} << 20);
  for (const int tasks : {2, 5, 64}) {
    empty_out();
    const auto result = run_job(3, tasks);
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

// No task knows how many tokens the earlier ones have, so the merge ends the whole.
TEST_F(MpiJob, EndsAtABudgetAsOneProcessDoes) {
  add_dirty_inputs(40);
  int ended = 0;
  int round = 0;
  flags_.insert(flags_.end(), {"--max-tokens", ""});
  for (const char* tokens : {"1", "300", "1500", "4000", "1000000"}) {
    SCOPED_TRACE(tokens);
    flags_.back() = tokens;
    const file_set wanted = undisturbed();
    const bool stops =
        wanted.at("x_text_document.meta").find("stopped_before") != std::string::npos;
    ended += stops ? 1 : 0;
    for (const int tasks : {1, 3, 7}) {
      empty_out();
      // Half of the jobs are killed when they have the copy of the part in which the run ends.
      if (round % 2 == 0) {
        (void)run_job(3, tasks, {}, {0, "MILLRACE_TEST_KILL_AT=place:1"}, test::small_blocks(300));
      }
      const auto result = run_job(1 + round++ % 4, tasks, {"--resume"});
      ASSERT_EQ(result.status, 0) << result.err;
      EXPECT_EQ(result.err.find("--max-tokens was reached") != std::string::npos, stops);
      expect_files(wanted);
    }
  }
  EXPECT_EQ(ended, 4);
}

// A task does not know the documents of the others, so the merge drops what is there twice.
TEST_F(MpiJob, DropsDuplicatesAsOneProcessDoes) {
  add_dirty_inputs(40);
  add("f.jsonl", test::read_text(inputs_.front()));
  int round = 0;
  for (const char* by : {"ids", "text"}) {
    if (!has_xxhash() && std::string(by) == "ids") continue;
    for (const char* tokens : {"300", "4000", "1000000"}) {
      SCOPED_TRACE(std::string(by) + ", " + tokens);
      flags_ = {"--on-bad-record", "quarantine", "--drop-duplicates", by, "--max-tokens", tokens};
      const file_set wanted = undisturbed();
      for (const int tasks : {1, 3, 7}) {
        empty_out();
        // Half of the jobs are killed while the merge syncs or publishes its files, or while parts
        // are removed.
        if (round % 2 == 0) {
          const strings steps = {"sync:40", "publish:25", "parts:2"};
          (void)run_job(
              3, tasks, {},
              {0, "MILLRACE_TEST_KILL_AT=" + steps[static_cast<std::size_t>(round) / 2 % 3]},
              test::small_blocks(300));
        }
        const auto result = run_job(1 + round++ % 4, tasks, {"--resume"});
        ASSERT_EQ(result.status, 0) << result.err;
        expect_files(wanted);
      }
    }
  }
}

TEST_F(MpiJob, PermutesDocumentsAsOneProcessDoes) {
  add_dirty_inputs(40);
  flags_.insert(flags_.end(), {"--fim-rate", "0.7", "--fim-spm-rate", "0.5", "--fim-seed", "3",
                               "--fim-prefix-token", "<", "--fim-middle-token", "|",
                               "--fim-suffix-token", ">", "--sample-rate", "0.8"});
  const file_set wanted = undisturbed();
  ASSERT_NE(wanted.at("x_text_document.meta").find("--fim-rate"), std::string::npos);
  for (const int tasks : {1, 3, 7}) {
    empty_out();
    const auto result = run_job(1 + tasks % 3, tasks);
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

// A job that was killed while it removed the parts has its output, and needs no part again.
TEST_F(MpiJob, RemovesTheRestOfThePartsWhenDuplicatesAreDropped) {
  add_dirty_inputs(40);
  add("f.jsonl", test::read_text(inputs_.front()));
  flags_ = {"--on-bad-record", "skip", "--drop-duplicates", "text"};
  const file_set wanted = undisturbed();
  (void)run_job(2, 3, {}, {0, "MILLRACE_TEST_KILL_AT=parts:2"}, test::small_blocks(300));
  ASSERT_FALSE(fs::exists(out() / "x_00000-of-00003_text_document.idx"));
  ASSERT_TRUE(fs::remove(out() / "x_00001-of-00003_text_document.bin"));
  const auto result = run_job(2, 3, {"--resume"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("already complete: nothing was read or written"));
  expect_files(wanted);
}

TEST_F(MpiJob, WithoutSidecarsThereAreNone) {
  add_dirty_inputs(40);
  flags_.insert(flags_.end(), {"--no-checksums", "--no-provenance"});
  const file_set wanted = undisturbed();
  const auto result = run_job(2, 5);
  ASSERT_EQ(result.status, 0) << result.err;
  expect_files(wanted);
}

// The test does not set MILLRACE_TEST_TASKS. Without this variable, an input as small as this one
// is a single task.
TEST_F(MpiJob, MoreRanksThanTasksDoNoHarm) {
  add("a.jsonl", test::good_lines(0, 50));
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = environment_of(1);
  options.environment.pop_back();
  const auto result = test::run_program(job_of(3, {"--json"}), options);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("{"), HasSubstr("\"documents\": 50"), EndsWith("}\n")));
  EXPECT_THAT(result.err, HasSubstr("with 3 workers"));
  expect_files(wanted);
}

TEST_F(MpiJob, ARankThatIsKilledLeavesWhatAnotherNumberGoesOnWith) {
  add_dirty_inputs(40);
  const file_set wanted = undisturbed();
  int kills = 0;
  int round = 0;
  // The rank is killed while it works, syncs files, completes a part, joins parts, renames files,
  // or removes parts.
  for (const auto& [rank, step] : std::vector<std::pair<int, std::string>>{{0, "journal:1"},
                                                                           {1, "sync:2"},
                                                                           {2, "sync:9"},
                                                                           {1, "journal:2"},
                                                                           {0, "publish:3"},
                                                                           {1, "publish:4"},
                                                                           {1, "place:1"},
                                                                           {0, "place:2"},
                                                                           {2, "place:3"},
                                                                           {0, "sync:60"},
                                                                           {0, "parts:1"},
                                                                           {0, "parts:4"}}) {
    SCOPED_TRACE("rank " + std::to_string(rank) + " at " + step);
    empty_out();
    const auto result =
        run_job(3, 7, {}, {rank, "MILLRACE_TEST_KILL_AT=" + step}, test::small_blocks(300));
    // Which tasks a rank takes depends on timing, so the rank may never reach this step.
    if (result.status == 0) {
      std::cout << "not met: rank " << rank << " at " << step << '\n';
      expect_files(wanted);
      continue;
    }
    ++kills;
    EXPECT_NE(result.status, test::stopped);
    expect_no_half_outputs(wanted);
    const auto again = run_job(1 + round++ % 4, 7, {"--resume"});
    ASSERT_EQ(again.status, 0) << again.err;
    expect_files(wanted);
  }
  std::cout << kills << " kills\n";
  EXPECT_GE(kills, 6);
}

// In each job, all ranks get the same random step. The first rank that reaches this step is killed,
// and the job ends.
TEST_F(MpiJob, AJobThatIsKilledManyTimesComesToItsEnd) {
  add_dirty_inputs(60);
  const file_set wanted = undisturbed();
  int kills = 0;
  for (; kills < 8; ++kills) {
    const int ranks = 1 + static_cast<int>(random_() % 3);
    strings environment = test::small_blocks(300);
    environment.push_back("MILLRACE_TEST_KILL_AT=" + std::to_string(20 + random_() % 60));
    const auto result = run_job(ranks, 7, {"--resume"}, {}, environment);
    if (result.status == 0) break;
    expect_no_half_outputs(wanted);
  }
  std::cout << kills << " kills\n";
  const auto last = run_job(2, 7, {"--resume"});
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_GE(kills, 2);
  expect_files(wanted);
}

TEST_F(MpiJob, ABadRecordIsToldWithItsPlaceAndCanBeDropped) {
  const std::string bad =
      add("a.jsonl", test::good_lines(0, 700) + "{broken\n" + test::good_lines(0, 50));
  const auto result = run_job(3, 7, {}, {}, test::small_blocks(200));
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(sentence_of(result), HasSubstr(bad + ":701 (byte "));
  expect_no_half_outputs({});
  flags_ = {"--on-bad-record", "skip"};
  const file_set wanted = undisturbed();
  const auto again = run_job(2, 7, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

TEST_F(MpiJob, AFailureBeforeAnythingWasDoneLeavesNothing) {
  add("a.jsonl", "{broken\n");
  const auto result = run_job(2, 1);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(sentence_of(result), HasSubstr("a.jsonl:1 "));
  EXPECT_TRUE(fs::is_empty(out()));
}

// Each task alone stays below the limit for bad records, but all tasks together exceed it.
TEST_F(MpiJob, BadRecordsOfAllTasksCountTogether) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += test::good_lines(0, 9) + "{broken\n";
  add("a.jsonl", text);
  flags_ = {"--on-bad-record", "skip", "--max-bad-records", "39"};
  const auto result = run_job(2, 8);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(sentence_of(result), HasSubstr("40 bad records in all tasks"));
  expect_no_half_outputs({});
  flags_.back() = "40";
  const file_set wanted = undisturbed();
  const auto again = run_job(3, 8, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

TEST_F(MpiJob, AFolderThatRefusesIsTold) {
  add("a.jsonl", test::good_lines(0, 20));
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(out(), fs::perms(0555));
  test::program_options options;
  options.environment = environment_of(3, {"HOME=/tmp"});
  options.ordinary_user = true;
  const auto result = test::run_program(job_of(2, {}), options);
  fs::permissions(out(), fs::perms(0755));
  if (result.status == test::cannot_become) GTEST_SKIP() << "no ordinary user can be had here";
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(sentence_of(result), AllOf(HasSubstr("x.journal"), HasSubstr("Permission denied")));
  EXPECT_TRUE(fs::is_empty(out()));
}

// The parts fit on the disk, but the merged dataset does not. The job must report this before it
// starts to merge. It can be resumed later.
TEST_F(MpiJob, ADiskTooSmallForTheWholeIsToldBeforeItIsWritten) {
  std::string lines;
  for (int i = 0; i < 400; ++i) lines += "{\"text\": \"" + std::string(1000, 'a') + "\"}\n";
  add("a.jsonl", lines);
  const file_set wanted = undisturbed();
  const int status = test::in_child([&] {
    const auto mount = [&](const char* size, unsigned long flags) {
      return ::mount("none", out().c_str(), "tmpfs", flags, size) == 0;
    };
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        !mount("size=1200k", 0)) {
      return test::cannot_try;
    }
    const auto result = run_job(2, 4);
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_THAT(sentence_of(result), HasSubstr("not enough disk space for the merged dataset: 8"));
    expect_no_half_outputs({});
    EXPECT_THAT(sentence_of(result), HasSubstr(" are missing; nothing was copied yet"));
    EXPECT_FALSE(fs::exists(partial("bin"))) << "nothing of the whole was begun";
    if (!mount("size=8m", MS_REMOUNT)) return test::cannot_try;
    const auto again = run_job(2, 4, {"--resume"});
    EXPECT_EQ(again.status, 0) << again.err;
    expect_files(wanted);
    return HasFailure() ? 1 : 0;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
  EXPECT_EQ(status, 0);
}

TEST_F(MpiJob, AFailingRankAloneEndsTheJob) {
  add_dirty_inputs(40);
  const file_set wanted = undisturbed();
  // Only rank 2 has a limit on file sizes, which acts like a full disk of its own.
  const auto rank_command = command({"--workers", "1"});
  std::string line = "ulimit -f 1; exec " + program("preprocess_data_mpi").string();
  for (std::size_t i = 1; i < rank_command.size(); ++i) line += " '" + rank_command[i] + "'";
  strings job = job_of(2, {});
  job.insert(job.end(), {":", "-n", "1", "/bin/bash", "-c", line});
  add("large.jsonl", test::good_lines(0, 9000));
  test::program_options options;
  options.environment = environment_of(7);
  const auto result = test::run_program(job, options);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(sentence_of(result), HasSubstr("rank 2: "));
  expect_no_half_outputs(wanted);
}

TEST_F(MpiJob, ASignalKeepsWhatWasDone) {
  add_dirty_inputs(3000);
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = environment_of(5, test::small_blocks(64));
  test::running_program job(job_of(2, {}), options);
  const fs::path part = out() / "x_00000-of-00005.journal";
  std::error_code none;
  while (!job.ended() && !(fs::file_size(part, none) > 4000 && !none)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  job.send(SIGUSR1);  // mpirun forwards the signal to the ranks
  const auto result = job.wait();
  EXPECT_EQ(result.status, test::stopped) << result.err;
  EXPECT_THAT(sentence_of(result), HasSubstr("pass --resume to continue"));
  expect_no_half_outputs({});
  const auto again = run_job(3, 5, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

// One rank gets SIGHUP, as when its terminal closes. The other ranks must stop, too.
TEST_F(MpiJob, AHangupOfOneRankKeepsWhatWasDone) {
  add_dirty_inputs(3000);
  const file_set wanted = undisturbed();
  const auto rank_command = command({"--workers", "1"});
  const fs::path id_file = folder_ / "rank";
  std::string line =
      "echo $$ > '" + id_file.string() + "'; exec " + program("preprocess_data_mpi").string();
  for (std::size_t i = 1; i < rank_command.size(); ++i) line += " '" + rank_command[i] + "'";
  strings job_command = job_of(1, {});
  job_command.insert(job_command.end(), {":", "-n", "1", "/bin/bash", "-c", line});
  test::program_options options;
  options.environment = environment_of(5, test::small_blocks(64));
  test::running_program job(job_command, options);
  const fs::path part = out() / "x_00000-of-00005.journal";
  std::error_code none;
  while (!job.ended() && !(fs::file_size(part, none) > 4000 && !none)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const int rank = std::stoi(test::read_text(id_file));
  ASSERT_GT(rank, 1);
  ASSERT_EQ(::kill(rank, SIGHUP), 0);
  const auto result = job.wait();
  EXPECT_EQ(result.status, test::stopped) << result.err;
  EXPECT_THAT(sentence_of(result), HasSubstr("pass --resume to continue"));
  expect_no_half_outputs({});
  const auto again = run_job(3, 5, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

TEST_F(MpiJob, WhatIsThereIsRespected) {
  add("a.jsonl", test::good_lines(0, 300));
  const file_set wanted = undisturbed();
  ASSERT_EQ(run_job(2, 3).status, 0);
  const auto refused = run_job(2, 3);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(sentence_of(refused), AllOf(HasSubstr(" exists; "), HasSubstr("--overwrite")));
  const auto done = run_job(2, 3, {"--resume"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("already complete"));
  // An unfinished job cannot be resumed with another number of tasks; it must start again.
  empty_out();
  ASSERT_NE(run_job(2, 7, {}, {0, "MILLRACE_TEST_KILL_AT=place:1"}).status, 0);
  const auto unfinished = run_job(2, 7);
  EXPECT_EQ(unfinished.status, 1);
  EXPECT_THAT(sentence_of(unfinished), HasSubstr("belongs to an unfinished run"));
  const auto other = run_job(2, 5, {"--resume"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(sentence_of(other), HasSubstr("tasks: 7, then 5"));
  const auto again = run_job(3, 5, {"--overwrite"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

// Inputs of complete tasks are not read again, unless the modification time of a file has changed.
TEST_F(MpiJob, AnInputThatChangedIsRefused) {
  const std::string text = test::good_lines(0, 900);
  const std::string path = add("a.jsonl", text);
  const file_set wanted = undisturbed();
  ASSERT_NE(run_job(2, 5, {}, {0, "MILLRACE_TEST_KILL_AT=place:1"}).status, 0);
  std::string changed = text;
  changed[20] = 'X';
  const auto later = fs::last_write_time(path) + std::chrono::seconds(5);
  add("a.jsonl", changed);
  fs::last_write_time(path, later);
  const auto refused = run_job(2, 5, {"--resume"});
  EXPECT_EQ(refused.status, 1) << refused.err;
  EXPECT_THAT(sentence_of(refused), HasSubstr("a.jsonl has changed"));
  add("a.jsonl", text + "\n");
  const auto longer = run_job(2, 5, {"--resume"});
  EXPECT_EQ(longer.status, 1) << longer.err;
  EXPECT_THAT(sentence_of(longer), HasSubstr("bytes of "));
  add("a.jsonl", text);
  fs::last_write_time(path, later);
  const auto again = run_job(2, 5, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  expect_files(wanted);
}

// A file of the same size takes the place of the input. It is older than the parts that the job
// made from the input.
TEST_F(MpiJob, AnOlderInputInThePlaceOfAnotherIsRefused) {
  const std::string text = test::good_lines(0, 900);
  const std::string path = add("a.jsonl", text);
  const file_set wanted = undisturbed();
  const auto now = fs::last_write_time(path);
  const auto put = [&](const std::string& contents, std::chrono::hours age) {
    add("a.jsonl", contents);
    fs::last_write_time(path, now - age);
  };
  std::string changed = text;
  changed[20] = 'X';
  // First the job is killed when all parts are complete, then when all final outputs are complete.
  for (const char* step : {"place:1", "parts:1"}) {
    empty_out();
    put(text, std::chrono::hours(2));
    ASSERT_NE(run_job(2, 5, {}, {0, std::string("MILLRACE_TEST_KILL_AT=") + step}).status, 0);
    put(changed, std::chrono::hours(1));
    for (int time = 0; time < 2; ++time) {
      const auto refused = run_job(2, 5, {"--resume"});
      EXPECT_EQ(refused.status, 1) << step << refused.err;
      EXPECT_THAT(sentence_of(refused), HasSubstr("a.jsonl has changed")) << step;
    }
    put(text, std::chrono::hours(3));
    const auto again = run_job(2, 5, {"--resume"});
    ASSERT_EQ(again.status, 0) << step << again.err;
    expect_files(wanted);
  }
}

// The job compares its inputs after it has renamed the files of the dataset to their final names.
TEST_F(MpiJob, ASignalWhileInputsAreComparedSaysThatTheOutputIsComplete) {
  const std::string text = test::good_lines(0, 900);
  const std::string path = add("a.jsonl", text);
  const file_set wanted = undisturbed();
  ASSERT_NE(run_job(2, 5, {}, {0, "MILLRACE_TEST_KILL_AT=parts:1"}).status, 0);
  const auto later = fs::last_write_time(path) + std::chrono::seconds(5);
  fs::last_write_time(path, later);
  const auto result = run_job(2, 5, {"--resume"}, {0, "MILLRACE_TEST_STOP_AT=look:1"});
  EXPECT_EQ(result.status, test::stopped) << result.err;
  EXPECT_THAT(
      sentence_of(result),
      HasSubstr(
          "stopped by SIGTERM: the output is complete; pass --resume to compare the inputs again"));
  expect_files(wanted);
  const auto again = run_job(2, 5, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("to compare its checksum"));
  expect_files(wanted);
}

// The first job has other flags, keys and texts, but the same number of tasks. It is killed when
// its parts are complete, but its final outputs are not.
TEST_F(MpiJob, OverwritingLeavesNothingOfAnotherJobToGoOnWith) {
  add("a.jsonl", test::good_lines(100, 999));
  for (const int step : {2, 6, 9, 0}) {
    SCOPED_TRACE(step);
    empty_out();
    flags_ = {"--json-keys", "title", "text"};
    ASSERT_NE(run_job(2, 5, {}, {0, "MILLRACE_TEST_KILL_AT=place:1"}).status, 0);
    add("a.jsonl", test::good_lines(200, 1099));
    flags_ = {"--no-provenance"};
    const file_set wanted = undisturbed();
    const std::string kill = step == 0 ? "place:1" : "parts:" + std::to_string(step);
    ASSERT_NE(run_job(2, 5, {"--overwrite"}, {0, "MILLRACE_TEST_KILL_AT=" + kill}).status, 0);
    const auto resumed = run_job(2, 5, {"--resume"});
    if (step != 0) {  // the journal still describes the first job
      EXPECT_EQ(resumed.status, 1) << resumed.err;
      EXPECT_THAT(sentence_of(resumed), HasSubstr("had other settings"));
      const auto again = run_job(2, 5, {"--overwrite"});
      EXPECT_EQ(again.status, 0) << again.err;
    } else {
      EXPECT_EQ(resumed.status, 0) << resumed.err;
    }
    expect_files(wanted);
    add("a.jsonl", test::good_lines(100, 999));
  }
}

// The prefix x with the key a_text gives the same output names as the prefix x_a with the key text.
TEST_F(MpiJob, ADatasetOfAnUnfinishedRunUnderAnotherPrefixIsLeftAlone) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "{\"text\": \"one\", \"a_text\": \"two\"}\n";
  add("a.jsonl", text);
  strings alone = command();
  alone.at(2) = (out() / "x_a").string();
  test::program_options options;
  options.environment = test::small_blocks();
  options.environment.push_back("MILLRACE_TEST_KILL_AT=journal:9");
  ASSERT_EQ(test::run_program(alone, options).status, test::killed);
  const file_set left = test::files_of(out());
  flags_ = {"--json-keys", "a_text"};
  for (const strings& more : {strings{}, strings{"--overwrite"}, strings{"--resume"}}) {
    const auto refused = run_job(2, 3, more);
    EXPECT_EQ(refused.status, 1) << refused.err;
    EXPECT_THAT(sentence_of(refused), HasSubstr("the unfinished run of "));
    EXPECT_EQ(test::files_of(out()), left);
  }
}

TEST_F(MpiJob, RanksThatWereNotToldTheSameRefuse) {
  add("a.jsonl", test::good_lines(0, 30));
  strings job = job_of(2, {});
  const strings other = job_of(1, {"--append-eod"});
  job.push_back(":");
  job.insert(job.end(), other.begin() + 1, other.end());
  test::program_options options;
  options.environment = environment_of(2);
  const auto result = test::run_program(job, options);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(
      sentence_of(result),
      HasSubstr("rank 2: this rank has different flags, inputs or tokenizer files than rank 0"));
  EXPECT_TRUE(fs::is_empty(out()));
}

TEST_F(MpiJob, WrongFlagsAndPipesAreTold) {
  add("a.jsonl", test::good_lines(0, 3));
  const auto misused = run_job(2, 1, {"--task", "1/2"});
  EXPECT_EQ(misused.status, 2);
  EXPECT_THAT(sentence_of(misused), HasSubstr("--task"));
  inputs_ = {"-"};
  const auto pipe = run_job(2, 1);
  EXPECT_EQ(pipe.status, 1);
  EXPECT_THAT(sentence_of(pipe), HasSubstr("stdin is not a regular file"));
  EXPECT_TRUE(fs::is_empty(out()));
}

// The job must refuse to write its metrics to one of its output files. Otherwise, the last
// sample of the metrics would overwrite an output.
TEST_F(MpiJob, MetricsDoNotGoIntoWhatTheJobWrites) {
  add("a.jsonl", test::good_lines(0, 30));
  for (const char* name : {"x_text_document.bin", "x_text_document.meta", "x.journal",
                           "x_00001-of-00003_text_document.idx", "x_00002-of-00003.journal"}) {
    const auto result = run_job(2, 3, {"--metrics", (out() / name).string()});
    EXPECT_EQ(result.status, 1) << name << result.err;
    EXPECT_THAT(sentence_of(result), HasSubstr("this run writes its output there")) << name;
  }
  const auto nowhere = run_job(2, 3, {"--metrics", (out() / "none" / "m").string()});
  EXPECT_EQ(nowhere.status, 1) << nowhere.err;
  EXPECT_THAT(sentence_of(nowhere), HasSubstr("there is no folder"));
  EXPECT_TRUE(fs::is_empty(out()));
}

}  // namespace
}  // namespace millrace::preprocess
