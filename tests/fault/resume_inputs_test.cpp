// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::good_lines;
using test::killed;
using test::small_blocks;
using test::strings;

using ResumeInputs = test::resume_fault;

TEST_F(ResumeInputs, RefusesInputsThatAreOthersNow) {
  const std::string first = good_lines(0, 30);
  const std::string second = good_lines(30, 60);
  const std::string compressed = test::gzip(good_lines(60, 90));
  add("1.jsonl", first);
  add("2.jsonl", second);
  add("3.jsonl.gz", compressed);
  const file_set wanted = undisturbed();
  std::string changed = first;
  changed[changed.find("line 3\"")] = 'L';
  for (const std::string& other : {changed, first + "{}\n", first.substr(0, 900), std::string()}) {
    leave_unfinished("journal:27");
    add("1.jsonl", other);
    expect_sentence(run({"--resume"}), "1.jsonl has changed since the run read it");
    add("1.jsonl", first);
    expect_resumed(wanted);
  }
  leave_unfinished("journal:37");
  for (const std::string& other : {test::gzip(good_lines(61, 91)), compressed.substr(0, 60)}) {
    add("3.jsonl.gz", other);
    EXPECT_EQ(run({"--resume"}).status, 1);
  }
  add("3.jsonl.gz", compressed);
  expect_resumed(wanted);
}

// Log files grow: whole lines may be appended to a file after the run has read it.
TEST_F(ResumeInputs, GoesOnWithAFileThatGrew) {
  add("1.jsonl", good_lines(0, 30));
  leave_unfinished("journal:15");
  add("1.jsonl", good_lines(0, 50));
  expect_resumed(undisturbed());

  // In the following cases, the run reads all of 1.jsonl and then fails at the next file, which is
  // damaged.
  const std::string last = good_lines(0, 5) + "{\"text\": \"last\"}";
  const std::string next = test::gzip(good_lines(9, 12));
  const auto resume_with = [&](const std::string& before, const std::string& after) {
    SCOPED_TRACE(before.size() + after.size());
    empty_out();
    add("1.jsonl", before);
    add("2.jsonl.gz", next.substr(0, 12));
    EXPECT_EQ(run().status, 1);
    add("1.jsonl", after);
    add("2.jsonl.gz", next);
    return run({"--resume"});
  };
  for (const std::string end : {"\n", "\r\n", "\r"}) {
    const auto result = resume_with(last + end, last + end + good_lines(6, 9));
    EXPECT_EQ(result.status, 0) << result.err;
    expect_files(undisturbed());
  }
  // In the following cases, the last line of the file is complete when the run reads it. The change
  // appends bytes to this line, at least a line terminator or a space.
  const char* refusal = "1.jsonl has changed since the run read it";
  expect_sentence(resume_with(last, last + "\n" + good_lines(6, 9)), refusal);
  expect_sentence(resume_with(last, last + " \n"), refusal);
  expect_sentence(resume_with(last + "\r", last + "\r\n"), refusal);
}

// `cp -p` can replace an input with another text that has the same size and modification time. If
// the run resumed, its output would mix both texts.
TEST_F(ResumeInputs, RefusesAnotherTextOfTheSameSizeAndModificationTime) {
  const std::string text = good_lines(0, 30);
  const fs::path input = add("1.jsonl", text);
  add("2.jsonl", good_lines(30, 60));
  const file_set wanted = undisturbed();
  leave_unfinished("journal:27");
  const auto modified = fs::last_write_time(input);
  std::string other = text;
  other[other.find("line 3\"")] = 'L';
  add("1.jsonl", other);
  fs::last_write_time(input, modified);
  const auto refused = run({"--resume"});
  expect_sentence(refused, "1.jsonl has changed since the run read it");
  EXPECT_THAT(refused.err, testing::HasSubstr("reading 1 input again"));
  EXPECT_THAT(refused.err, testing::HasSubstr("the inode change time does not; --trust-inputs"));
  expect_nothing_half({});

  add("1.jsonl", text);
  fs::last_write_time(input, modified);
  expect_resumed(wanted);
}

TEST_F(ResumeInputs, ComparesAnInputWithAnotherChangeTimeOnce) {
  const fs::path input = add("1.jsonl", good_lines(0, 30));
  add("2.jsonl", good_lines(30, 60));
  const file_set wanted = undisturbed();
  const auto comparison = testing::HasSubstr("to compare its checksum");
  const auto renew_change_time = [&] {
    // Changing the mode and restoring it updates the change time. Wait first, because the clock of
    // change times is coarse.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    fs::permissions(input, fs::perms::owner_read);
    fs::permissions(input, fs::perms::owner_read | fs::perms::owner_write);
  };
  leave_unfinished("journal:27");
  renew_change_time();
  const auto first = run_killed_at("journal:9", {"--resume"});
  EXPECT_EQ(first.status, killed);
  EXPECT_THAT(first.err, comparison);
  EXPECT_THAT(first.err, testing::ContainsRegex("compared 1 input in [0-9.]+ s"));
  const auto second = run({"--resume"});
  EXPECT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, testing::Not(comparison));
  expect_files(wanted);

  leave_unfinished("journal:27");
  renew_change_time();
  const auto trusting = run({"--resume", "--trust-inputs"});
  EXPECT_EQ(trusting.status, 0) << trusting.err;
  EXPECT_THAT(trusting.err, testing::Not(comparison));
  expect_files(wanted);
}

TEST_F(ResumeInputs, TrustsOrComparesTheInputsOfAFinishedRun) {
  const std::string text = good_lines(0, 30);
  const fs::path input = add("1.jsonl", text);
  ASSERT_EQ(run().status, 0);
  const auto modified = fs::last_write_time(input);
  std::string other = text;
  other[other.find("line 3\"")] = 'L';
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // file times have a coarse clock
  add("1.jsonl", other);
  fs::last_write_time(input, modified);
  expect_sentence(run({"--resume"}), "1.jsonl has changed since");
  EXPECT_EQ(run({"--resume", "--trust-inputs"}).status, 0);
}

// --trust-inputs affects only the run that gets this flag. The next run without this flag compares
// the inputs that the earlier run only trusted.
TEST_F(ResumeInputs, ComparesATrustedInputInTheNextRun) {
  const std::string text = good_lines(0, 30);
  const fs::path input = add("1.jsonl", text);
  add("2.jsonl", good_lines(30, 60));
  const file_set wanted = undisturbed();
  const auto modified = fs::last_write_time(input);
  const auto put = [&](const std::string& other) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // file times have a coarse clock
    add("1.jsonl", other);
    fs::last_write_time(input, modified);
  };
  std::string other = text;
  other[other.find("line 3\"")] = 'L';
  put(text);
  leave_unfinished("journal:27");
  put(other);
  EXPECT_EQ(run_killed_at("journal:4", {"--resume", "--trust-inputs"}).status, killed);
  expect_sentence(run({"--resume"}), "1.jsonl has changed since the run read it");
  put(text);
  expect_resumed(wanted);
}

TEST_F(ResumeInputs, TrustsInputsOnlyToResume) {
  add("1.jsonl", good_lines(0, 3));
  const auto result = run({"--trust-inputs"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, testing::HasSubstr("--trust-inputs requires --resume"));
}

TEST_F(ResumeInputs, AFileThatChangesUnderTheRunEndsIt) {
  const std::string text = good_lines(0, 3000);
  const std::string input = add("1.jsonl", text);
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks(64);
  {
    test::running_program program(command(), options);
    ASSERT_TRUE(wait_for_checkpoints(program));
    program.send(SIGSTOP);
    fs::resize_file(input, text.size() - 1000);
    program.send(SIGCONT);
    expect_sentence(program.wait(), "the file became shorter while it was being read");
    expect_nothing_half({});
    test::write_text(input, text);
    const auto result = run({"--resume"}, {});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
  }
  empty_out();
  test::running_program program(command(), options);
  ASSERT_TRUE(wait_for_checkpoints(program));
  program.send(SIGSTOP);
  add("1.jsonl", good_lines(0, 3100));
  program.send(SIGCONT);
  expect_sentence(program.wait(), "the file became longer while it was being read");
  expect_nothing_half({});
  const auto result = run({"--resume"}, {});
  ASSERT_EQ(result.status, 0) << result.err;
  expect_files(undisturbed());
}

TEST_F(ResumeInputs, GoesOnWhenADamagedFileIsMended) {
  add("1.jsonl", good_lines(0, 20));
  const std::string gzip = test::gzip(good_lines(20, 400));
  const std::string zstd = test::zstd(good_lines(400, 450));
  add("2.jsonl.gz", gzip);
  add("3.jsonl.zst", zstd + zstd);
  add("4.jsonl", good_lines(450, 460));
  const file_set wanted = undisturbed();

  empty_out();
  add("2.jsonl.gz", gzip.substr(0, gzip.size() / 2));
  expect_sentence(run(), "2.jsonl.gz: ");
  expect_nothing_half({});
  expect_sentence(run({"--resume"}), "2.jsonl.gz: ");
  add("2.jsonl.gz", gzip);
  expect_resumed(wanted);

  empty_out();
  std::string damaged = zstd + zstd;
  damaged[zstd.size()] ^= 1;
  add("3.jsonl.zst", damaged);
  expect_sentence(run(), "3.jsonl.zst: ");
  expect_nothing_half({});
  add("3.jsonl.zst", zstd + zstd);
  expect_resumed(wanted);
}

/// Compressed files with the text `good`, and damaged versions of them. A damaged version holds the
/// text `wrong`, followed by the checksum of `good`. The text is so long (4 MB) that a run has read
/// some of it before it reaches the checksum and finds the damage.
struct damage {
  damage() {
    for (int i = 0; i < 100; ++i) {
      good +=
          "{\"text\": \"" + std::string(40'000, 'r') + std::to_string(i) + "\", \"title\": \"\"}\n";
    }
    wrong = good;
    wrong[wrong.find("r7\"")] = 'R';
    gzip = test::gzip(good);
    zstd = test::zstd(good);
    bad_gzip = with_end_of(test::gzip(wrong), gzip, 8);
    bad_zstd = with_end_of(test::zstd(wrong), zstd, 4);
  }

  static std::string with_end_of(const std::string& compressed, const std::string& of,
                                 std::size_t n) {
    return compressed.substr(0, compressed.size() - n) + of.substr(of.size() - n);
  }

  std::string good;
  std::string wrong;
  std::string gzip;
  std::string zstd;
  std::string bad_gzip;
  std::string bad_zstd;
};

TEST_F(ResumeInputs, BeginsAnewWithAMendedFileWhoseTextWasWrong) {
  const damage files;
  const auto expect_mended = [&](const std::string& name, const std::string& bad,
                                 const std::string& mended, bool begins_anew = true) {
    SCOPED_TRACE(name);
    const file_set wanted = [&] {
      add(name, mended);
      return undisturbed();
    }();
    empty_out();
    add(name, bad);
    expect_sentence(run(), name + ": ");
    expect_nothing_half({});
    expect_sentence(run({"--resume"}), name + ": ");  // the file is still damaged
    add(name, mended);
    const auto result = run({"--resume"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err.find(name + " was damaged; reading it again") != std::string::npos,
              begins_anew);
    expect_files(wanted);
  };
  flags_ = {"--json-keys", "text", "title"};
  expect_mended("1.jsonl.gz", files.bad_gzip, files.gzip);  // first input damaged: nothing is kept
  add("2.jsonl", good_lines(0, 20));
  expect_mended("3.jsonl.zst", files.bad_zstd, files.zstd);
  // In a file of several frames, each frame is checked before its text is used. So the run has not
  // used any wrong text.
  expect_mended("4.jsonl.zst", files.zstd + files.bad_zstd, files.zstd + files.zstd, false);
  add("5.jsonl", good_lines(90, 99));
  expect_mended("3.jsonl.zst", files.bad_zstd, files.zstd);
}

// A run reads a repaired input again from its start. If an input before the repaired one has
// changed, the run refuses to resume. The resumed run may be killed at any step.
TEST_F(ResumeInputs, BeginsAnewWithNoOtherInput) {
  const std::string first = good_lines(0, 20);
  const damage files;
  add("1.jsonl", first);
  add("2.jsonl.zst", files.zstd);
  const file_set wanted = undisturbed();
  for (const char* step : {"journal:1", "journal:2", "journal:3", "journal:4", "sync:3"}) {
    SCOPED_TRACE(step);
    empty_out();
    add("2.jsonl.zst", files.bad_zstd);
    EXPECT_EQ(run().status, 1);
    add("2.jsonl.zst", files.zstd);
    std::string changed = first;
    changed[changed.find("line 3\"")] = 'L';
    add("1.jsonl", changed);
    expect_sentence(run({"--resume"}), "1.jsonl has changed since the run read it");
    add("1.jsonl", first);
    EXPECT_EQ(run_killed_at(step, {"--resume"}).status, killed);
    expect_resumed(wanted);
  }
}

// A journal holds the state of the run, and a stamp (size and times) of each input. While the state
// still refers to the damaged file, the journal must not get the stamp of the repaired file.
// Otherwise, the next run would resume in the middle of the repaired file.
TEST_F(ResumeInputs, BeginsAnewWhenKilledWithADamagedFirstInput) {
  const damage files;
  const auto expect_restarts = [&](const std::string& name) {
    const file_set wanted = [&] {
      add(name, files.zstd);
      return undisturbed();
    }();
    for (const char* step : {"journal:1", "journal:2", "journal:3", "journal:4", "sync:3"}) {
      SCOPED_TRACE(step);
      empty_out();
      add(name, files.bad_zstd);
      EXPECT_EQ(run().status, 1);
      add(name, files.zstd);
      EXPECT_EQ(run_killed_at(step, {"--resume"}).status, killed);
      expect_resumed(wanted);
    }
  };
  {
    SCOPED_TRACE("alone");
    expect_restarts("1.jsonl.zst");
  }
  SCOPED_TRACE("first");
  add("2.jsonl", good_lines(0, 20));
  expect_restarts("1.jsonl.zst");
}

// The resumed run reads past the damaged place, but is killed before it reaches the checksum. So
// the resumed run has not verified the text up to that place.
TEST_F(ResumeInputs, BeginsAnewAfterAKillBehindTheDamage) {
  const damage files;
  const std::string more = good_lines(0, 200);
  add("1.jsonl", good_lines(0, 20));
  add("2.jsonl.zst", test::zstd(files.good + more));
  const file_set wanted = undisturbed();
  empty_out();
  add("2.jsonl.zst", files.bad_zstd);
  expect_sentence(run(), "2.jsonl.zst: ");
  add("2.jsonl.zst", test::zstd(files.wrong + more));
  EXPECT_EQ(run_killed_at("journal:5", {"--resume"}).status, killed);
  add("2.jsonl.zst", test::zstd(files.good + more));
  const auto result = run({"--resume"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, testing::HasSubstr("2.jsonl.zst was damaged; reading it again"));
  expect_files(wanted);
}

}  // namespace
}  // namespace millrace::preprocess
