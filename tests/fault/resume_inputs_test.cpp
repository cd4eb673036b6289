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
  const std::string packed = test::gzip(good_lines(60, 90));
  add("1.jsonl", first);
  add("2.jsonl", second);
  add("3.jsonl.gz", packed);
  const file_set wanted = undisturbed();
  std::string changed = first;
  changed[changed.find("line 3\"")] = 'L';
  for (const std::string& other : {changed, first + "{}\n", first.substr(0, 900), std::string()}) {
    leave_unfinished("journal:27");
    add("1.jsonl", other);
    expect_sentence(run({"--resume"}), "1.jsonl is not what it was when the run read it");
    add("1.jsonl", first);
    expect_resumed(wanted);
  }
  leave_unfinished("journal:37");
  for (const std::string& other : {test::gzip(good_lines(61, 91)), packed.substr(0, 60)}) {
    add("3.jsonl.gz", other);
    EXPECT_EQ(run({"--resume"}).status, 1);
  }
  add("3.jsonl.gz", packed);
  expect_resumed(wanted);
}

// Logs grow. Whole lines may come behind those that were read.
TEST_F(ResumeInputs, GoesOnWithAFileThatGrew) {
  add("1.jsonl", good_lines(0, 30));
  leave_unfinished("journal:15");
  add("1.jsonl", good_lines(0, 50));
  expect_resumed(undisturbed());

  // All of the file was read, and a damaged one behind it ended the run.
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
  // What was taken for a whole line is none now.
  const char* refusal = "1.jsonl is not what it was when the run read it";
  expect_sentence(resume_with(last, last + "\n" + good_lines(6, 9)), refusal);
  expect_sentence(resume_with(last, last + " \n"), refusal);
  expect_sentence(resume_with(last + "\r", last + "\r\n"), refusal);
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
    expect_sentence(program.wait(), "the file became shorter while it was read");
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
  expect_sentence(program.wait(), "the file became longer while it was read");
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

}  // namespace
}  // namespace millrace::preprocess
