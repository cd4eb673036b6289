// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

#include <sys/stat.h>

#include <fstream>
#include <iostream>
#include <map>

#include <millrace/formats/detail/crc32c.hpp>

#include "merge/content_key.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using clock = std::chrono::steady_clock;
using test::dirty_lines;
using test::file_set;
using test::files_of;
using test::good_lines;
using test::killed;
using test::small_blocks;
using test::strings;

using ResumeFault = test::resume_fault;

TEST_F(ResumeFault, AKillAtAnyStepLeavesWhatGoesOn) {
  add_dirty_inputs(8);
  const file_set wanted = undisturbed();
  ASSERT_EQ(wanted.size(), 12U);  // two keys, each with .bin .idx .meta .sum .src .bad
  int kills = 0;
  for (const auto& [name, stride] :
       std::map<std::string, int>{{"journal", 1}, {"publish", 1}, {"sync", 5}}) {
    for (int step = 1;; step += stride) {
      SCOPED_TRACE(name + ":" + std::to_string(step));
      empty_out();
      const auto result = run_killed_at(name + ":" + std::to_string(step));
      if (result.status == 0) break;
      ASSERT_EQ(result.status, killed) << result.err;
      ++kills;
      expect_nothing_half(wanted);
      expect_resumed(wanted, {"--workers", std::to_string(1 + step % 3)});
      if (HasFailure()) return;
    }
  }
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 80);
}

// These inputs are read in special ways: arrays, archives, and giants (lines that are treated as
// too long for memory). A run that reads them may be killed at any step.
TEST_F(ResumeFault, AKillAtAnyStepOfRareInputsLeavesWhatGoesOn) {
  flags_ = {"--json-keys", "text", "title", "--on-bad-record", "skip"};
  add_rare_inputs(30);
  const file_set wanted = undisturbed();
  int kills = 0;
  for (int number = 1;; number += 31) {
    const std::string step = "journal:" + std::to_string(number);
    SCOPED_TRACE(step);
    empty_out();
    strings environment = small_blocks();
    environment.push_back(giant_environment);
    environment.push_back("MILLRACE_TEST_KILL_AT=" + step);
    const auto result = run({}, environment);
    if (result.status == 0) break;
    ASSERT_EQ(result.status, killed) << result.err;
    expect_nothing_half(wanted);
    expect_resumed(wanted);
    if (HasFailure()) return;
    ++kills;
  }
  EXPECT_GE(kills, 10);
}

TEST_F(ResumeFault, AKillAtAnyStepOfPartitionsLeavesWhatGoesOn) {
  add_dirty_inputs(8);
  flags_.insert(flags_.end(), {"--partitions", "3"});
  const file_set wanted = undisturbed();
  ASSERT_EQ(wanted.size(), 12U);  // no files of partitions remain
  int kills = 0;
  for (const auto& [name, stride] :
       std::map<std::string, int>{{"journal", 7}, {"publish", 1}, {"sync", 97}}) {
    for (int step = 1;; step += stride) {
      SCOPED_TRACE(name + ":" + std::to_string(step));
      empty_out();
      const auto result = run_killed_at(name + ":" + std::to_string(step));
      if (result.status == 0) break;
      ASSERT_EQ(result.status, killed) << result.err;
      ++kills;
      expect_nothing_half(wanted);
      expect_resumed(wanted, {"--workers", std::to_string(1 + step % 3)});
      if (HasFailure()) return;
    }
  }
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 60);
}

TEST_F(ResumeFault, AKillAtAnyStepOfARunWithoutDuplicatesLeavesWhatGoesOn) {
  add_dirty_inputs(8);
  add("f.jsonl", test::read_text(inputs_.front()));
  int kills = 0;
  for (const char* by : {"text", "ids"}) {
    if (!has_xxhash() && std::string(by) == "ids") continue;
    flags_ = {"--on-bad-record", "quarantine", "--drop-duplicates", by, "--max-tokens", "900"};
    const file_set wanted = undisturbed();
    ASSERT_EQ(wanted.size(), 7U);  // .bin .idx .meta .sum .src .bad .duplicates
    for (const auto& steps :
         std::map<std::string, int>{{"journal", 7}, {"publish", 1}, {"sync", 37}}) {
      const int stride = steps.second;
      const auto is_killed = [&](int number) {
        const std::string step = steps.first + ":" + std::to_string(number);
        SCOPED_TRACE(step);
        empty_out();
        const auto result = run_killed_at(step);
        if (result.status == 0) return false;
        EXPECT_EQ(result.status, killed) << result.err;
        ++kills;
        expect_nothing_half(wanted);
        expect_resumed(wanted, {"--workers", std::to_string(1 + number % 3)});
        return !HasFailure();
      };
      int end = 1;
      while (is_killed(end)) end += stride;
      // Each of the last steps, in which the output is complete and the journal is removed
      for (int step = end - stride + 1; step < end; ++step) (void)is_killed(step);
      if (HasFailure()) return;
    }
  }
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 30);
}

// A user who starts over may omit --drop-duplicates, or drop other documents.
TEST_F(ResumeFault, NoDatasetWithAllDocumentsOutlivesAnotherBeginning) {
  if (!has_xxhash()) GTEST_SKIP() << "this build has no xxHash";
  add_dirty_inputs(8);
  flags_ = {"--on-bad-record", "skip"};
  const strings plain = flags_;
  strings by_text = flags_;
  by_text.insert(by_text.end(), {"--drop-duplicates", "text"});
  for (const strings& next : {plain, by_text}) {
    for (const char* step : {"journal:9", "publish:1", "publish:6", "publish:18"}) {
      SCOPED_TRACE(step);
      flags_ = plain;
      flags_.insert(flags_.end(), {"--drop-duplicates", "ids"});
      empty_out();
      ASSERT_EQ(run_killed_at(step).status, killed);
      ASSERT_TRUE(fs::is_directory(out() / ".millrace-all-x"));
      flags_ = next;
      const file_set wanted = undisturbed();
      expect_sentence(run({"--resume"}), "had other settings (");
      ASSERT_EQ(run({"--overwrite"}).status, 0);
      expect_files(wanted);
    }
  }
  // The new run may have another key, so it does not write the same files.
  flags_ = plain;
  flags_.insert(flags_.end(), {"--drop-duplicates", "ids"});
  empty_out();
  ASSERT_EQ(run_killed_at("publish:13").status, killed);
  ASSERT_TRUE(fs::exists(partial("keys")));
  flags_ = plain;
  flags_.insert(flags_.end(), {"--json-keys", "title"});
  const file_set wanted = undisturbed();
  ASSERT_EQ(run({"--overwrite"}).status, 0);
  expect_files(wanted);
}

// A run that drops duplicates writes to its own folder first, and needs the disk space of what an
// abandoned run left.
TEST_F(ResumeFault, NoPartialFileOutlivesTheBeginningOfARunWithoutDuplicates) {
  add_dirty_inputs(8);
  flags_ = {"--on-bad-record", "skip"};
  leave_unfinished();
  ASSERT_TRUE(fs::exists(partial("bin")));
  flags_.insert(flags_.end(), {"--drop-duplicates", "text"});
  const file_set wanted = undisturbed();
  ASSERT_EQ(run_killed_at("journal:9", {"--overwrite"}).status, killed);
  EXPECT_EQ(test::names_of(test::files_of(out())), strings{"x.journal"});
  expect_resumed(wanted);
}

// A run with a folder of all documents removes it only when no journal describes it.
TEST_F(ResumeFault, AKillAtAnyStepOfARunWithoutGoodRecordsLeavesWhatGoesOn) {
  add("a.jsonl", "no JSON\nnor here\n" + std::string(400, '['));
  for (const strings& more : {strings{}, strings{"--drop-duplicates", "text"}}) {
    flags_ = {"--on-bad-record", "skip"};
    flags_.insert(flags_.end(), more.begin(), more.end());
    for (int step = 1;; ++step) {
      SCOPED_TRACE("journal:" + std::to_string(step));
      empty_out();
      const auto result = run_killed_at("journal:" + std::to_string(step));
      if (result.status != killed) {
        EXPECT_GT(step, 8);
        break;
      }
      expect_sentence(run({"--resume"}), "every record is bad");
      EXPECT_TRUE(fs::is_empty(out()));
      if (HasFailure()) return;
    }
  }
}

TEST_F(ResumeFault, SaysThatTheFolderOfAllDocumentsIsGone) {
  add_dirty_inputs(8);
  flags_ = {"--on-bad-record", "skip", "--drop-duplicates", "text"};
  const file_set wanted = undisturbed();
  for (const char* step : {"journal:9", "publish:4", "publish:14"}) {
    SCOPED_TRACE(step);
    leave_unfinished(step);
    fs::remove_all(out() / ".millrace-all-x");
    expect_sentence(run({"--resume"}),
                    ".millrace-all-x, which had all documents of this run; pass "
                    "--overwrite to start again");
    ASSERT_EQ(run({"--overwrite"}).status, 0);
    expect_files(wanted);
  }
}

// A user who starts over may request fewer partitions, or none.
TEST_F(ResumeFault, NoPartitionOutlivesAnotherBeginning) {
  add_dirty_inputs(8);
  const strings usual = flags_;
  for (const char* partitions : {"1", "2"}) {
    flags_ = usual;
    flags_.insert(flags_.end(), {"--partitions", "5"});
    leave_unfinished();
    ASSERT_TRUE(fs::exists(out() / "x_title_document.part-00004.bin.partial"));
    flags_.back() = partitions;
    const file_set wanted = undisturbed();
    expect_sentence(run({"--resume"}), "had other settings (--partitions: 5, then ");
    ASSERT_EQ(run({"--overwrite"}).status, 0);
    expect_files(wanted);
  }
}

// Kills and resumes the same run many times. The number of workers and the block size change each
// time.
TEST_F(ResumeFault, ARunThatIsKilledManyTimesComesToItsEnd) {
  add_dirty_inputs(60);
  const file_set wanted = undisturbed();
  int kills = 0;
  for (; kills < 500; ++kills) {
    strings environment = small_blocks(64 + static_cast<int>(random_() % 300));
    environment.push_back("MILLRACE_TEST_KILL_AT=" + std::to_string(40 + random_() % 90));
    const auto result =
        run({"--resume", "--workers", std::to_string(1 + random_() % 4)}, environment);
    if (result.status == 0) break;
    ASSERT_EQ(result.status, killed) << result.err;
    expect_nothing_half(wanted);
  }
  std::cout << kills << " kills\n";
  EXPECT_GT(kills, 10);
  expect_files(wanted);
}

// MILLRACE_KILLS sets the number of kills. A slow test in ctest sets it to 200.
TEST_F(ResumeFault, AKillAtAnyTimeLeavesWhatGoesOn) {
  const char* given = std::getenv("MILLRACE_KILLS");
  const int wanted_kills = given != nullptr ? std::atoi(given) : 15;
  add_dirty_inputs(150);
  // The frames are larger than 1 MiB, so a run decompresses them in pieces.
  std::string frames;
  for (int frame = 0; frame < 3; ++frame) {
    std::string text;
    while (text.size() < (std::size_t{5} << 18)) text += dirty_lines(random_, 500);
    frames += test::zstd(text);
  }
  add("f.jsonl.zst", frames);
  add_rare_inputs(40);
  // A bad line that counts as giant is quarantined without its text. So all runs of this test,
  // including the undisturbed one, must use the same size limit for giants.
  const file_set wanted = undisturbed({giant_environment});
  const strings environment = {"MILLRACE_TEST_BLOCK_BYTES=512", "MILLRACE_TEST_CHECKPOINT_MS=1",
                               giant_environment};
  const auto start = clock::now();
  ASSERT_EQ(run({}, environment).status, 0);
  const auto whole_run = clock::now() - start;
  int kills = 0;
  for (int round = 0; kills < wanted_kills && round < 5 * wanted_kills; ++round) {
    SCOPED_TRACE(round);
    empty_out();
    test::program_options options;
    options.environment = environment;
    for (int times = 1 + static_cast<int>(random_() % 3); times > 0; --times) {
      test::running_program program(command({"--resume"}), options);
      std::this_thread::sleep_for(whole_run * static_cast<int>(random_() % 1000) / 1000);
      program.kill();
      kills += program.wait().status == killed ? 1 : 0;
      expect_nothing_half(wanted);
    }
    const auto result = run({"--resume"}, {giant_environment});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
    if (HasFailure()) return;
  }
  std::cout << kills << " kills in runs of "
            << std::chrono::duration_cast<std::chrono::milliseconds>(whole_run).count() << " ms\n";
  EXPECT_GE(kills, wanted_kills);
}

TEST_F(ResumeFault, ASignalKeepsWhatWasDone) {
  add_dirty_inputs(1500);
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks(64);
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) {
    SCOPED_TRACE(signal);
    empty_out();
    test::running_program program(command(), options);
    ASSERT_TRUE(wait_for_checkpoints(program));
    program.send(signal);
    const auto result = program.wait();
    EXPECT_EQ(result.status, test::stopped) << result.err;
    EXPECT_THAT(result.err, AllOf(HasSubstr("preprocess_data: stopped, with "),
                                  EndsWith(" documents safe; pass --resume to continue\n")));
    EXPECT_TRUE(fs::exists(journal()));
    const auto again = run({"--resume"}, {});
    ASSERT_EQ(again.status, 0) << again.err;
    expect_files(wanted);
  }
}

// A program starts with some signals ignored if nohup runs it, or if a shell script runs it in the
// background.
TEST_F(ResumeFault, ASignalThatWasIgnoredAtTheStartStaysIgnored) {
  add_dirty_inputs(1500);
  const file_set wanted = undisturbed();
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    SCOPED_TRACE(signal);
    empty_out();
    test::program_options options;
    options.environment = small_blocks(64);
    options.ignored_signals = {signal};
    test::running_program program(command(), options);
    ASSERT_TRUE(wait_for_checkpoints(program));
    program.send(signal);
    const auto result = program.wait();
    EXPECT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
}

TEST_F(ResumeFault, ASignalBeforeAnythingWasDoneLeavesNothing) {
  const std::string fifo = (folder_ / "in/fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  inputs_ = {fifo};
  test::running_program program(command());
  const std::ofstream writer(fifo);
  while (!fs::exists(partial("bin")) && !program.ended()) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  program.send(SIGTERM);
  EXPECT_EQ(program.wait().status, test::stopped);
  EXPECT_TRUE(files_of(out()).empty());
}

// A run with --overwrite can be resumed with --resume alone, even if the killed run had not
// finished any work.
TEST_F(ResumeFault, AnOverwriteThatDidNothingIsGoneOnWith) {
  const std::string fifo = (folder_ / "in/fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string old = add("old.jsonl", good_lines(0, 3));
  inputs_ = {add("new.jsonl", good_lines(5, 9))};
  const std::string wanted = undisturbed().at("x_text_document.bin");
  for (const int signal : {SIGTERM, SIGKILL}) {
    SCOPED_TRACE(signal);
    empty_out();
    inputs_ = {old};
    ASSERT_EQ(run().status, 0);
    inputs_ = {fifo};
    {
      test::running_program program(command({"--overwrite"}));
      const std::ofstream writer(fifo);
      while (!fs::exists(partial("bin")) && !program.ended()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      program.send(signal);
      EXPECT_NE(program.wait().status, 0);
    }
    expect_sentence(run(), "belongs to an unfinished run; pass --resume to continue");
    test::running_program again(command({"--resume"}));
    std::ofstream(fifo) << good_lines(5, 9);
    const auto result = again.wait();
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(files_of(out()).at("x_text_document.bin") == wanted);
    EXPECT_FALSE(fs::exists(journal()));
  }
}

TEST_F(ResumeFault, TellsWhatIsUnfinishedAndWhatIsDone) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  leave_unfinished();
  const file_set left = files_of(out());
  expect_sentence(run(),
                  journal().string() + " belongs to an unfinished run; pass --resume to continue");
  EXPECT_TRUE(files_of(out()) == left);
  expect_resumed(wanted);
  const auto written = fs::last_write_time(out() / "x_text_document.bin");
  expect_resumed(wanted);  // the run is already complete
  EXPECT_EQ(fs::last_write_time(out() / "x_text_document.bin"), written);
  expect_sentence(run(), "exists");
  expect_files(wanted);
  empty_out();
  expect_resumed(wanted);  // there is no run to resume
}

TEST_F(ResumeFault, OneThatStillRunsIsNotGoneOnWith) {
  add_dirty_inputs(1500);
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks(64);
  test::running_program first(command(), options);
  ASSERT_TRUE(wait_for_checkpoints(first));
  first.send(SIGSTOP);
  for (const char* flag : {"--resume", "--overwrite"}) {
    expect_sentence(run({flag}), "another process is writing with this --output-prefix");
  }
  first.kill();
  EXPECT_EQ(first.wait().status, killed);
  const auto result = run({"--resume"}, {});
  ASSERT_EQ(result.status, 0) << result.err;
  expect_files(wanted);
}

TEST_F(ResumeFault, RefusesToGoOnOtherwiseThanItBegan) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  leave_unfinished();
  const file_set left = files_of(out());
  const std::vector<std::pair<strings, std::string>> others = {
      {{"--no-checksums"}, "checksums: on, then off"},
      {{"--no-provenance"}, "provenance: on, then off"},
      {{"--json-keys", "text"}, "--json-keys: title, then none"},
      {{"--json-keys", "title", "text"}, "--json-keys: text, then title"},
      {{"--on-bad-record", "skip"}, "--on-bad-record: quarantine, then fail or skip"}};
  const strings usual = flags_;
  for (const auto& [other, said] : others) {
    SCOPED_TRACE(said);
    flags_ = usual;
    if (other.front() == "--json-keys") flags_ = {"--on-bad-record", "quarantine"};
    if (other.front() == "--on-bad-record") flags_ = {"--json-keys", "text", "title"};
    strings more = {"--resume"};
    more.insert(more.end(), other.begin(), other.end());
    const auto result = run(more);
    expect_sentence(result, "the interrupted run had other settings");
    EXPECT_TRUE(files_of(out()) == left);
  }
  flags_ = usual;
  const strings inputs = inputs_;
  std::swap(inputs_[0], inputs_[1]);
  expect_sentence(run({"--resume"}), "had other settings (an input: ");
  inputs_ = strings(inputs.begin(), inputs.end() - 1);
  expect_sentence(run({"--resume"}), "had other settings (number of inputs: 5, then 4)");
  inputs_ = inputs;
  expect_resumed(wanted);
}

// Starts over with --overwrite, and kills this run. A resume must not bring back the state of the
// earlier run, whose files no longer exist.
TEST_F(ResumeFault, AKillWhileStartingAgainLeavesOldNewOrNone) {
  add_dirty_inputs(8);
  const file_set wanted = undisturbed();
  for (const char* before : {"journal:9", "publish:1", "publish:5"}) {
    for (int step = 1; step < 16; ++step) {
      SCOPED_TRACE(before + std::string(", then ") + std::to_string(step));
      leave_unfinished(before);
      ASSERT_EQ(run_killed_at(std::to_string(step), {"--overwrite"}).status, killed);
      const auto result = run({"--resume"});
      if (result.status == 1) {
        expect_sentence(result, "exists; pass --overwrite");
        ASSERT_EQ(run({"--overwrite"}).status, 0);
      }
      expect_files(wanted);
      if (HasFailure()) return;
    }
  }
}

// A user who starts over may pass other keys. Then the outputs have other names.
TEST_F(ResumeFault, StartingAgainRemovesWhatOnlyTheFirstRunHad) {
  add("1.jsonl", good_lines(0, 90));
  const file_set wanted = undisturbed();
  for (const char* flag : {"", "--partitions=3"}) {
    empty_out();
    flags_ = {"--json-keys", "text", "title"};
    const strings more = *flag == '\0' ? strings{} : strings{flag};
    ASSERT_EQ(run_killed_at("journal:9", more).status, killed);
    ASSERT_TRUE(fs::exists(out() / (*flag == '\0' ? "x_title_document.bin.partial"
                                                  : "x_title_document.part-00001.bin.partial")));
    test::write_text(out() / "x_other_document.bin.partial", "of somebody else");
    flags_ = {};
    ASSERT_EQ(run({"--overwrite"}).status, 0);
    EXPECT_EQ(test::read_text(out() / "x_other_document.bin.partial"), "of somebody else");
    fs::remove(out() / "x_other_document.bin.partial");
    expect_files(wanted);
  }
}

TEST_F(ResumeFault, StartsAgainWhereAnotherVersionStopped) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  const std::string payload = std::string("i\x09\0\0\0", 5) + "something";
  std::string record = test::little_endian(static_cast<std::uint32_t>(payload.size()), 4);
  record += test::little_endian(formats::crc32c(std::as_bytes(std::span(payload))), 4) + payload;
  test::write_text(journal(), record);
  for (const strings& flags : {strings{}, strings{"--resume"}}) {
    expect_sentence(run(flags), "another version of this program; pass --overwrite to start again");
  }
  EXPECT_EQ(test::read_text(journal()), record);
  EXPECT_EQ(run({"--overwrite"}).status, 0);
  expect_files(wanted);
}

}  // namespace
}  // namespace millrace::preprocess
