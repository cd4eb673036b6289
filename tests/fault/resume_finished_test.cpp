// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

/// After a finished run, --resume reports "already complete" only if the outputs are complete and
/// match the inputs.
namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::good_lines;
using test::strings;

class ResumeFinished : public test::resume_fault {
 protected:
  /// Completes a run over all kinds of input files. Returns the expected outputs.
  file_set finish() {
    add_dirty_inputs();
    const file_set wanted = undisturbed();
    EXPECT_EQ(run().status, 0);
    return wanted;
  }
  void touch(const std::string& name) const {
    fs::last_write_time(folder_ / "in" / name, fs::file_time_type::clock::now());
  }
};

TEST_F(ResumeFinished, ReadsOnlyInputsThatAreNewer) {
  const file_set wanted = finish();
  const auto untouched = run({"--resume"});
  EXPECT_EQ(untouched.status, 0);
  EXPECT_THAT(untouched.err, testing::HasSubstr("already complete"));
  EXPECT_THAT(untouched.err, testing::Not(testing::HasSubstr("to compare")));
  for (const char* name : {"a.jsonl", "b.jsonl.gz", "c.jsonl", "d.jsonl.zst", "e.jsonl"}) {
    touch(name);
  }
  const auto touched = run({"--resume"});
  EXPECT_EQ(touched.status, 0) << touched.err;
  EXPECT_THAT(touched.err, testing::HasSubstr("reading 5 inputs again"));
  expect_files(wanted);
}

// On Linux, a file name can hold any bytes. In JSON output, millrace writes bytes that are not
// UTF-8 as lone surrogates.
TEST_F(ResumeFinished, KnowsInputsWhoseNamesAreNotUtf8) {
  add("caf\xE9 \xC3\xA9.jsonl", good_lines(0, 5) + "bad\n");
  flags_ = {"--on-bad-record", "quarantine"};
  const file_set wanted = undisturbed();
  const std::string name = "caf\\udce9 \xC3\xA9.jsonl\"";
  EXPECT_THAT(wanted.at("x_text_document.meta"), testing::HasSubstr(name));
  EXPECT_THAT(wanted.at("x_text_document.bad"), testing::HasSubstr(name));
  EXPECT_THAT(wanted.at("x_text_document.src"), testing::HasSubstr("caf\xE9 \xC3\xA9.jsonl"));
  ASSERT_EQ(run().status, 0);
  const auto again = run({"--resume"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, testing::HasSubstr("already complete"));
  expect_files(wanted);

  // An earlier version of millrace wrote U+FFFD for these bytes into the .meta.
  const fs::path meta = out() / "x_text_document.meta";
  std::string older = wanted.at("x_text_document.meta");
  older.replace(older.find("\\udce9"), 6, "\xEF\xBF\xBD");
  test::write_text(meta, older);
  const auto of_older = run({"--resume"});
  EXPECT_EQ(of_older.status, 0) << of_older.err;
  EXPECT_THAT(of_older.err, testing::HasSubstr("already complete"));
  const std::string prefix = (out() / "x_text_document").string();
  const auto verified =
      test::run_program({test::program("inspect_dataset").string(), "verify", prefix});
  EXPECT_EQ(verified.status, 0) << verified.err << verified.out;

  leave_unfinished("journal:3");
  expect_resumed(wanted);
}

TEST_F(ResumeFinished, RefusesInputsThatAreOthersNow) {
  const file_set wanted = finish();
  const std::string plain = test::read_text(folder_ / "in" / "a.jsonl");
  std::string changed = plain;
  changed[changed.find("rr")] = 'R';
  for (const std::string& other : {changed, plain + "\n", plain.substr(0, plain.size() - 1)}) {
    add("a.jsonl", other);
    expect_sentence(run({"--resume"}), "a.jsonl has changed since");
    expect_files(wanted);
  }
  add("a.jsonl", plain);
  // The changed compressed file may hold a text of the same size as before. So only a run that
  // reads the file notices the change.
  const std::string compressed = test::read_text(folder_ / "in" / "b.jsonl.gz");
  for (const std::string& other : {test::gzip(changed), test::gzip(plain + plain)}) {
    add("b.jsonl.gz", other);
    expect_sentence(run({"--resume"}), "b.jsonl.gz has changed since");
  }
  add("b.jsonl.gz", compressed);
  expect_resumed(wanted);
}

// Replaces the input with an older file of the same size: first with a link to that file, then with
// the file itself. `cp -p`, `mv` and `ln` keep the old modification time.
TEST_F(ResumeFinished, RefusesAnOlderFileInTheirPlace) {
  const file_set wanted = finish();
  const fs::path input = folder_ / "in" / "a.jsonl";
  const std::string plain = test::read_text(input);
  std::string changed = plain;
  changed[changed.find("rr")] = 'R';
  const auto old = fs::last_write_time(input) - std::chrono::hours(1);
  const fs::path other = folder_ / "other";
  test::write_text(other, changed);
  fs::last_write_time(other, old);
  fs::rename(input, folder_ / "kept");
  fs::create_symlink(other, input);
  expect_sentence(run({"--resume"}), "a.jsonl has changed since");
  fs::remove(input);
  fs::rename(other, input);
  ASSERT_EQ(fs::last_write_time(input), old);
  expect_sentence(run({"--resume"}), "a.jsonl has changed since");
  expect_files(wanted);
  fs::rename(folder_ / "kept", input);
  expect_resumed(wanted);
}

// If the clock is set back after the run, an input that changes later may get an older date than
// the output.
TEST_F(ResumeFinished, TrustsNoDateThatIsToCome) {
  finish();
  const fs::path input = folder_ / "in" / "a.jsonl";
  std::string text = test::read_text(input);
  text[text.find("rr")] = 'R';
  test::write_text(input, text);
  const auto tomorrow = fs::file_time_type::clock::now() + std::chrono::hours(24);
  fs::last_write_time(out() / "x_text_document.meta", tomorrow);
  expect_sentence(run({"--resume"}), "a.jsonl has changed since");
}

TEST_F(ResumeFinished, MissesFilesThatShouldBeThere) {
  const file_set wanted = finish();
  for (const char* key : {"text", "title"}) {
    for (const char* suffix : {"sum", "src", "bad"}) {
      const std::string name = std::string("x_") + key + "_document." + suffix;
      fs::remove(out() / name);
      expect_sentence(run({"--resume"}), name + ", which is missing; put it back");
      test::write_text(out() / name, wanted.at(name));
    }
  }
  expect_resumed(wanted);
  fs::resize_file(out() / "x_text_document.idx", 100);
  expect_sentence(run({"--resume"}), "exists");
}

// The flags of the run determine its sidecars (files such as P.sum and P.src). --resume must not
// expect any others.
TEST_F(ResumeFinished, NeedsNoSidecarThatWasNotWanted) {
  add("1.jsonl", good_lines(0, 9));
  flags_ = {"--no-checksums", "--no-provenance"};
  const file_set wanted = undisturbed();
  ASSERT_EQ(run().status, 0);
  expect_resumed(wanted);
}

// The range of a task can begin and end inside a file. --resume must compare only the bytes of this
// range.
TEST_F(ResumeFinished, ComparesWhatATaskReadOfAFile) {
  std::string text = good_lines(0, 300);
  add("1.jsonl", text);
  for (const char* task : {"0/3", "1/3", "2/3"}) {
    ASSERT_EQ(run({"--task", task}).status, 0);
    const auto again = run({"--task", task, "--resume"});
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.err, testing::HasSubstr("already complete"));
  }
  text[text.find("line 150")] = 'L';
  add("1.jsonl", text);
  EXPECT_EQ(run({"--task", "0/3", "--resume"}).status, 0);
  expect_sentence(run({"--task", "1/3", "--resume"}), "1.jsonl has changed since");
  EXPECT_EQ(run({"--task", "2/3", "--resume"}).status, 0);
}

// The sizes of all inputs determine which task reads which file. If the size of an archive changes
// after one task has run, whole files move to another task.
TEST_F(ResumeFinished, RefusesTasksThatShareOtherInputs) {
  for (const char* name : {"a.gz", "b.gz", "c.gz", "d.gz"}) {
    add(name, test::gzip(good_lines(0, 50)));
  }
  ASSERT_EQ(run({"--task", "0/2"}).status, 0);
  ASSERT_EQ(run_killed_at("journal:5", {"--task", "1/2"}).status, test::killed);
  std::string mended;
  for (int i = 0; i < 400; ++i) mended += "{\"text\": \"" + std::to_string(random_()) + "\"}\n";
  add("a.gz", test::gzip(mended));
  expect_sentence(
      run({"--task", "1/2", "--resume"}),
      "(what the task reads, which the sizes of all inputs decide: from byte 0 of input "
      "2 to byte 0 of input 4, then from byte 0 of input 1 to");
  expect_sentence(run({"--task", "0/2", "--resume"}),
                  "x_00000-of-00002_text_document was made from inputs with other names or sizes, "
                  "so this task now has another share of them");
  ASSERT_EQ(run({"--task", "1/2", "--overwrite"}).status, 0);
  const auto merge = [&] {
    return test::run_program({test::program("merge_datasets").string(), "--input", out().string(),
                              "--output-prefix", (folder_ / "whole").string()});
  };
  const auto refused = merge();
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err,
              testing::HasSubstr("begins at byte 0 of input 1, counted from 0, but the "
                                 "earlier parts end at byte 0 of input 2"));
  ASSERT_EQ(run({"--task", "0/2", "--overwrite"}).status, 0);
  const auto merged = merge();
  EXPECT_EQ(merged.status, 0) << merged.err;
  const file_set whole = undisturbed();
  for (const char* suffix : {"bin", "idx", "meta", "sum", "src"}) {
    EXPECT_EQ(test::read_text(folder_ / (std::string("whole.") + suffix)),
              whole.at(std::string("x_text_document.") + suffix))
        << suffix;
  }
}

}  // namespace
}  // namespace millrace::preprocess
