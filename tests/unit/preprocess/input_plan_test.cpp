// SPDX-License-Identifier: Apache-2.0
#include "input/input_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/io/detail/unique_fd.hpp>

#include "support/child_process.hpp"
#include "support/compressed.hpp"
#include "support/cpu_time.hpp"
#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class InputPlan : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void add(const std::string& name, const std::string& contents = "{}\n") const {
    test::write_text(folder_ / name, contents);
  }

  // Returns the names of the planned files, without the folder.
  std::vector<std::string> names(const std::vector<std::string>& arguments) const {
    std::vector<std::string> out;
    for (const input_file& file : plan_inputs(arguments)) {
      EXPECT_EQ(file.path.parent_path(), folder_.path());
      out.push_back(file.path.filename().string());
    }
    return out;
  }

  std::string config_message(const std::string& argument) const {
    try {
      (void)plan_inputs(std::vector<std::string>{argument});
    } catch (const config_error& e) {
      return e.what();
    }
    return "no config_error";
  }

  int io_code(const std::string& argument) const {
    try {
      (void)plan_inputs(std::vector<std::string>{argument});
    } catch (const io_error& e) {
      EXPECT_EQ(e.path(), argument);
      return e.code();
    }
    return 0;
  }

  compression compressed_with(const std::string& name) const {
    return plan_inputs(std::vector<std::string>{path(name)}).at(0).compressed_with;
  }

  test::temp_folder folder_;
};

TEST_F(InputPlan, KeepsTheOrderAndTheRepetitionsOfNames) {
  for (const char* name : {"a", "b"}) add(name);
  EXPECT_THAT(names({path("b"), path("a"), path("b")}), ElementsAre("b", "a", "b"));
}

// Matches of a pattern are sorted by byte value. Megatron uses the order in which the folder lists
// them, so two machines may make two different datasets.
TEST_F(InputPlan, SortsTheMatchesOfAPatternByByteValue) {
  for (const char* name : {"p_10", "p_2", "p_1", "p_B", "p_a", "p_\xC3\xA4"}) add(name);
  EXPECT_THAT(names({path("p_*")}), ElementsAre("p_1", "p_10", "p_2", "p_B", "p_a", "p_\xC3\xA4"));
}

TEST_F(InputPlan, SortsWithinAPatternOnly) {
  for (const char* name : {"a1", "a2", "b1", "b2"}) add(name);
  EXPECT_THAT(names({path("b?"), path("a[12]"), path("a1")}),
              ElementsAre("b1", "b2", "a1", "a2", "a1"));
}

// An existing file is used, even if its name looks like a pattern. A downloaded file may be called
// "data[1].jsonl", and the shell passes the name on as it is.
TEST_F(InputPlan, TakesAnExistingFileWhateverItsName) {
  for (const char* name : {"d[1]", "d1", "what?", "st*r", "stxr"}) add(name);
  EXPECT_THAT(names({path("d[1]")}), ElementsAre("d[1]"));
  EXPECT_THAT(names({path("st*r")}), ElementsAre("st*r"));
  EXPECT_THAT(names({path("what?")}), ElementsAre("what?"));
}

TEST_F(InputPlan, NamesAPatternThatMatchesNothing) {
  EXPECT_THAT(config_message(path("*.jsonl")),
              testing::AllOf(HasSubstr(path("*.jsonl")), HasSubstr("matches")));
}

TEST_F(InputPlan, RefusesAMissingFile) {
  EXPECT_EQ(io_code(path("none")), ENOENT);
}

// Files are sorted by whole path: "a-b" comes before "a/b", because '-' comes before '/'.
TEST_F(InputPlan, TakesAllFilesOfAFolder) {
  for (const char* folder : {"d", "d/a", "d/a/x", "d/.git", "d/b"}) {
    std::filesystem::create_directory(folder_ / folder);
  }
  for (const char* name : {"d/a/b", "d/a-b", "d/z", "d/a/x/1", "d/.hidden", "d/.git/HEAD", "d/B"}) {
    add(name);
  }
  std::filesystem::create_symlink(folder_ / "d/z", folder_ / "d/b/link");
  ASSERT_EQ(::mkfifo(path("d/fifo").c_str(), 0600), 0);
  for (const std::string& folder : {path("d"), path("d/")}) {
    std::vector<std::string> found;
    for (const input_file& file : plan_inputs(std::vector<std::string>{folder})) {
      found.push_back(file.path.lexically_relative(folder_ / "d").string());
      EXPECT_TRUE(file.regular);
      EXPECT_EQ(file.path.string().find("//"), std::string::npos);
    }
    EXPECT_THAT(found, ElementsAre("B", "a-b", "a/b", "a/x/1", "b/link", "z")) << folder;
  }
}

TEST_F(InputPlan, RefusesAFolderWithoutFiles) {
  std::filesystem::create_directories(folder_ / "empty/below");
  add("empty/.hidden");
  EXPECT_THAT(config_message(path("empty")),
              testing::AllOf(HasSubstr(path("empty")), HasSubstr("no file")));
}

// Inside an input folder, a link to another folder is refused. Such links may form cycles, and
// skipping them would lose documents.
TEST_F(InputPlan, RefusesALinkToAFolderInAFolder) {
  std::filesystem::create_directory(folder_ / "d");
  add("d/file");
  std::filesystem::create_directory_symlink("..", folder_ / "d/loop");
  EXPECT_THAT(config_message(path("d")), HasSubstr(path("d/loop")));
  std::filesystem::remove(folder_ / "d/loop");
  std::filesystem::create_symlink("gone", folder_ / "d/dangling");
  EXPECT_EQ(config_message(path("d/file")), "no config_error");
  EXPECT_THROW((void)plan_inputs(std::vector<std::string>{path("d")}), io_error);
}

TEST_F(InputPlan, TakesALinkToAFolderAsAnArgument) {
  std::filesystem::create_directory(folder_ / "d");
  add("d/file");
  std::filesystem::create_directory_symlink("d", folder_ / "link");
  const auto files = plan_inputs(std::vector<std::string>{path("link")});
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].path, folder_ / "link/file");
}

TEST_F(InputPlan, ReadsTheArgumentsOfAList) {
  std::filesystem::create_directory(folder_ / "d");
  for (const char* name : {"b", "a1", "a2", "with space", "d/file"}) add(name);
  add("list", path("b") + "\n\n  \n" + path("a*") + "\r\n" + path("with space") + "\n" + path("d"));
  std::vector<std::string> found;
  for (const input_file& file : plan_inputs(std::vector<std::string>{"@" + path("list")})) {
    found.push_back(file.path.filename().string());
  }
  EXPECT_THAT(found, ElementsAre("b", "a1", "a2", "with space", "file"));
}

TEST_F(InputPlan, RefusesAMissingList) {
  try {
    (void)plan_inputs(std::vector<std::string>{"@" + path("none")});
    ADD_FAILURE() << "taken";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_EQ(e.path(), path("none"));
  }
}

TEST_F(InputPlan, RefusesAListInAList) {
  add("file");
  add("list", path("file") + "\n@other\n");
  EXPECT_THAT(config_message("@" + path("list")),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("@other")));
  add("blank", "\n \n");
  EXPECT_THAT(config_message("@" + path("blank")), HasSubstr("this list names no file"));
}

TEST_F(InputPlan, TakesAFileWhoseNameBeginsWithAnAt) {
  add("@file");
  EXPECT_THAT(names({path("@file")}), ElementsAre("@file"));
}

TEST_F(InputPlan, TakesStdinOnce) {
  const auto files = plan_inputs(std::vector<std::string>{"-"});
  ASSERT_EQ(files.size(), 1U);
  EXPECT_TRUE(files[0].is_stdin());
  EXPECT_FALSE(files[0].regular);
  EXPECT_EQ(display_path(files[0]), "stdin");
  try {
    (void)plan_inputs(std::vector<std::string>{"-", "-"});
    ADD_FAILURE() << "taken twice";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("twice"));
  }
}

// If a pattern matches a file named "-", the file is read, not stdin.
TEST_F(InputPlan, DoesNotTakeAFileForStdin) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  add("-");
  const auto files = plan_inputs(std::vector<std::string>{"[-]"});
  std::filesystem::current_path(before);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_FALSE(files[0].is_stdin());
  EXPECT_EQ(files[0].path, "./-");
}

// Many files are planned in linear time: for a corpus of many shards, each file must be looked at
// only once.
TEST_F(InputPlan, PlansManyFilesInLinearTime) {
  add("one");
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += path("one") + "\n";
  add("list", lines);
  const double start = test::cpu_seconds();
  EXPECT_EQ(plan_inputs(std::vector<std::string>{"@" + path("list")}).size(), 100'000U);
  EXPECT_LT(test::cpu_seconds() - start, 30.0);
}

TEST_F(InputPlan, RefusesAFolderAmongTheMatchesOfAPattern) {
  add("x1");
  std::filesystem::create_directory(folder_ / "x2");
  EXPECT_THROW((void)names({path("x*")}), io_error);
}

// A dangling link among the matches means that a shard is missing. It must not be skipped.
TEST_F(InputPlan, RefusesALinkToNothing) {
  add("x1");
  std::filesystem::create_symlink("gone", folder_ / "x2");
  EXPECT_THROW((void)names({path("x*")}), io_error);
}

TEST_F(InputPlan, RefusesAFileThatMayNotBeRead) {
  add("secret");
  std::filesystem::permissions(folder_ / "secret", std::filesystem::perms::none);
  const int result = test::in_child(
      [&] { return test::become_ordinary_user() ? io_code(path("secret")) : test::cannot_try; });
  if (result == test::cannot_try) GTEST_SKIP() << "cannot become an ordinary user";
  EXPECT_EQ(result, EACCES);
}

TEST_F(InputPlan, TellsTheCompressionByTheFirstBytes) {
  add("plain", "{\"text\": \"a\"}\n");
  add("gz", test::gzip("{}"));
  add("zst", test::zstd("{}"));
  add("skippable", test::zstd_skippable("s") + test::zstd("{}"));
  add("jsonl_in_name.jsonl", test::gzip("{}"));
  EXPECT_EQ(compressed_with("plain"), compression::none);
  EXPECT_EQ(compressed_with("gz"), compression::gzip);
  EXPECT_EQ(compressed_with("zst"), compression::zstd);
  EXPECT_EQ(compressed_with("skippable"), compression::zstd);
  EXPECT_EQ(compressed_with("jsonl_in_name.jsonl"), compression::gzip);
}

// A skippable frame may begin with any of sixteen magic numbers.
TEST_F(InputPlan, KnowsEverySkippableFrame) {
  for (char low = 0x50; low < 0x60; ++low) {
    add("s", std::string(1, low) + "\x2A\x4D\x18");
    EXPECT_EQ(compressed_with("s"), compression::zstd) << int{low};
  }
  for (const char low : {char{0x4F}, char{0x60}}) {
    add("s", std::string(1, low) + "\x2A\x4D\x18");
    EXPECT_EQ(compressed_with("s"), compression::none) << int{low};
  }
}

TEST_F(InputPlan, TakesFilesTooShortForAMagicNumber) {
  for (const std::string contents : {"", "{", "\x1F", "\x28\xB5\x2F"}) {
    add("short", contents);
    EXPECT_EQ(compressed_with("short"), compression::none) << testing::PrintToString(contents);
  }
}

// A file is refused if its name is that of a compressed file, but its bytes are not compressed.
// Perhaps the file was decompressed without a change of its name, or its download was interrupted.
// Reading the file as text would report bad JSON on line 1.
TEST_F(InputPlan, RefusesACompressedNameOnOtherBytes) {
  for (const char* name : {"a.gz", "a.jsonl.zst"}) {
    add(name, "{}\n");
    EXPECT_THAT(config_message(path(name)),
                testing::AllOf(HasSubstr(path(name)), HasSubstr("first bytes")));
  }
  add("b.gz", test::zstd("{}"));
  EXPECT_THAT(config_message(path("b.gz")), HasSubstr("1f 8b"));
  add("b.bz2", "BZh9 is how this text begins");
  EXPECT_THAT(config_message(path("b.bz2")), HasSubstr("42 5a 68"));
  add("b.xz", "{}\n");
  EXPECT_THAT(config_message(path("b.xz")), HasSubstr("fd 37 7a 58 5a 00"));
  add("b.zst", test::gzip("{}"));
  EXPECT_THAT(config_message(path("b.zst")), HasSubstr("28 b5 2f fd"));
  add("c.gz", "\x1F");
  EXPECT_THAT(config_message(path("c.gz")), HasSubstr("1f 8b"));
}

// An empty file is accepted, whatever its name. Python's gzip module also reads such a file as
// empty, without an error.
TEST_F(InputPlan, TakesAnEmptyFileOfAnyName) {
  for (const char* name : {"e.gz", "e.zst", "e.jsonl"}) {
    add(name, "");
    EXPECT_EQ(compressed_with(name), compression::none);
  }
}

TEST_F(InputPlan, TellsTheSizeOnDisk) {
  add("a", "12345");
  EXPECT_EQ(plan_inputs(std::vector<std::string>{path("a")}).at(0).size_bytes, 5U);
}

// Planning does not open a FIFO. Opening a FIFO and closing it again would stop its writer: its
// data would be lost, and the next open would wait forever.
TEST_F(InputPlan, DoesNotOpenAFifo) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  auto planned = std::async(std::launch::async,
                            [&] { return plan_inputs(std::vector<std::string>{path("fifo")}); });
  const bool prompt = planned.wait_for(std::chrono::seconds(5)) == std::future_status::ready;
  EXPECT_TRUE(prompt) << "it waits for a writer";
  if (!prompt) const io::unique_fd rescue(::open(path("fifo").c_str(), O_RDWR | O_NONBLOCK));
  const auto files = planned.get();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].size_bytes, 0U);
  EXPECT_EQ(files[0].compressed_with, compression::none);
}

}  // namespace
}  // namespace millrace::preprocess
