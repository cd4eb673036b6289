// SPDX-License-Identifier: Apache-2.0
#include "support/resume_fault.hpp"

#include <iostream>

#include "support/child_process.hpp"
#include "support/small_disk.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using test::files_of;
using test::good_lines;
using test::small_blocks;
using test::strings;

class ResumeLimits : public test::resume_fault {};

// A run may fail to resume because it has too few descriptors. It must then leave everything that a
// later run needs to resume.
TEST_F(ResumeLimits, AFewDescriptorsLoseNothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, and takes their lack for a fault";
#endif
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks();
  int failed = 0;
  for (::rlim_t limit = 4; limit <= 48; limit += 2) {
    SCOPED_TRACE(limit);
    options.descriptors = limit;
    empty_out();
    const auto fresh = test::run_program(command(), options);
    expect_nothing_half(fresh.status == 0 ? wanted : file_set());
    if (fresh.status == 0) continue;
    if (limit >= 8) expect_sentence(fresh, std::generic_category().message(EMFILE));
    leave_unfinished();
    const auto resumed = test::run_program(command({"--resume"}), options);
    if (resumed.status != 0) {
      ++failed;
      expect_nothing_half({});
      expect_resumed(wanted);
    }
    expect_files(wanted);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 5);
}

TEST_F(ResumeLimits, OneKeyFitsIntoThirtyTwoDescriptors) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself needs descriptors, and takes their lack for a fault";
#endif
  add("1.jsonl", good_lines(0, 50));
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks();
  options.descriptors = 32;
  const auto result = test::run_program(command(), options);
  ASSERT_EQ(result.status, 0) << result.err;
  expect_files(wanted);
}

TEST_F(ResumeLimits, AFileSizeLimitLosesNothing) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  test::program_options options;
  options.environment = small_blocks();
  int failed = 0;
  for (::rlim_t limit = 0; limit <= 40'000; limit = limit * 5 / 4 + 16) {
    SCOPED_TRACE(limit);
    empty_out();
    options.file_size = limit;
    const auto result = test::run_program(command(), options);
    if (result.status == 0) break;
    ++failed;
    EXPECT_EQ(result.status, 1);
    // The limit also applies to the file that receives stderr. So the message is complete only if
    // the limit is high enough.
    if (limit > 400) expect_sentence(result, std::generic_category().message(EFBIG));
    expect_nothing_half({});
    expect_resumed(wanted);
    if (HasFailure()) return;
  }
  EXPECT_GT(failed, 10);
}

TEST_F(ResumeLimits, AFolderThatMayNotBeWrittenLosesNothing) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  leave_unfinished();
  fs::permissions(out(), fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(journal(), fs::perms::owner_read);
  test::program_options options;
  options.ordinary_user = true;
  const auto result = test::run_program(command({"--resume"}), options);
  fs::permissions(out(), fs::perms::owner_all);
  fs::permissions(journal(), fs::perms::owner_read | fs::perms::owner_write);
  if (result.status == test::cannot_become) GTEST_SKIP() << "cannot become an ordinary user";
  expect_sentence(result, out().string());
  expect_resumed(wanted);
}

struct full_disk {
  const char* unit;  // mount option of the scarce resource
  int factor;
  strings environment;
};

class ResumeFullDisk : public ResumeLimits {
 protected:
  // Runs on a disk with the mount options `limits`. If the run did not fit, resumes it on a larger
  // disk. Returns an exit code.
  int try_disk(const std::string& limits, const full_disk& disk, const file_set& wanted,
               bool& fits) {
    SCOPED_TRACE(limits);
    if (!test::mount_memory(out(), limits)) return test::cannot_try;
    const auto result = run({}, disk.environment);
    fits = result.status == 0;
    if (!fits) {
      expect_sentence(result, std::generic_category().message(ENOSPC));
      expect_nothing_half({});
      if (!test::mount_memory(out(), "size=64m,nr_inodes=1000", MS_REMOUNT))
        return test::cannot_try;
      expect_resumed(wanted);
    }
    if (::umount(out().c_str()) != 0) return test::cannot_try;
    return HasFailure() ? 1 : 0;
  }
};

// Each disk is too small for the journal, the tokens, the index or P.meta. The test enlarges the
// disk until a run fits.
TEST_F(ResumeFullDisk, LosesNothing) {
  add_dirty_inputs(60);
  const file_set wanted = undisturbed();
  const std::vector<full_disk> disks = {
      {"size", 4096, small_blocks(800)}, {"size", 4096, {}}, {"nr_inodes", 1, small_blocks(800)}};
  const int status = test::in_child([&] {
    if (!test::enter_mount_namespace()) return test::cannot_try;
    for (const full_disk& disk : disks) {
      int count = 1;
      for (bool fits = false; !fits; count += count < 40 ? 1 : 5) {
        const std::string limits = disk.unit + ("=" + std::to_string(count * disk.factor));
        const int problem = try_disk(limits, disk, wanted, fits);
        if (problem != 0) return problem;
      }
      std::cout << "fits into " << count * disk.factor << " by " << disk.unit << std::endl;
      if (count < 8) return 2;
    }
    return 0;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
  EXPECT_EQ(status, 0);
}

// In these tests, strace changes the result of a system call of the program.
class ResumeInjected : public ResumeLimits {
 protected:
  void SetUp() override {
    for (const std::string folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
      if (strace_.empty() && fs::exists(folder + "strace")) strace_ = folder + "strace";
    }
    if (strace_.empty() ||
        test::run_program({strace_, "-f", "-o", "/dev/null", "/bin/true"}).status != 0) {
      GTEST_SKIP() << "NOT tested: there is no strace here, or it may not trace";
    }
  }

  // strace counts calls per thread, and each checkpoint runs on its own thread.
  test::program_result run_injected(const std::string& what, const fs::path& path,
                                    strings environment) const {
    strings all = {strace_, "-f", "-o", "/dev/null", "-e", "inject=" + what, "-P", path.string()};
    const strings inner = command();
    all.insert(all.end(), inner.begin(), inner.end());
    test::program_options options;
    options.environment = std::move(environment);
    // Leak checks do not work under strace.
    options.environment.emplace_back("ASAN_OPTIONS=detect_leaks=0");
    return test::run_program(all, options);
  }

 private:
  std::string strace_;
};

TEST_F(ResumeInjected, ADiskThatCannotBeReadLosesNothing) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  for (const std::size_t input : {0U, 1U, 3U, 4U}) {
    for (const int when : {1, 2, 3}) {
      SCOPED_TRACE(inputs_[input] + " " + std::to_string(when));
      empty_out();
      const auto result =
          run_injected("pread64,preadv2,read:error=EIO:when=" + std::to_string(when) + "+",
                       inputs_[input], small_blocks());
      expect_sentence(result, std::generic_category().message(EIO));
      expect_nothing_half({});
      expect_resumed(wanted);
      if (HasFailure()) return;
    }
  }
}

// A failed fsync may lose data, although the next fsync reports success. So after a failure, the
// run must not treat any of this data as safe.
TEST_F(ResumeInjected, WhatAFailedSyncLostIsWrittenAgain) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  for (const char* end : {"bin", "idx", "documents", "src", "src-groups", "sum", "bad"}) {
    for (const bool checkpoints : {false, true}) {
      SCOPED_TRACE(end);
      empty_out();
      const auto result = run_injected("fsync:error=EIO:when=1", partial(end),
                                       checkpoints ? small_blocks() : strings());
      expect_sentence(result, std::generic_category().message(EIO));
      expect_nothing_half({});
      test::write_text(partial(end), "");
      expect_resumed(wanted);
    }
  }
}

TEST_F(ResumeInjected, AJournalThatCannotBeWrittenLosesNothing) {
  add_dirty_inputs();
  const file_set wanted = undisturbed();
  for (const bool checkpoints : {false, true}) {
    for (const char* call :
         {"fdatasync:error=EIO:when=1", "fdatasync:error=EIO:when=2", "fdatasync:error=EIO:when=3",
          "pwrite64:error=ENOSPC:when=1", "pwrite64:error=ENOSPC:when=2"}) {
      SCOPED_TRACE(call);
      empty_out();
      const auto result = run_injected(call, journal(), checkpoints ? small_blocks() : strings());
      EXPECT_EQ(result.status, 1);
      expect_nothing_half({});
      EXPECT_TRUE(fs::exists(journal()) || files_of(out()).empty());
      expect_resumed(wanted);
    }
  }
}

}  // namespace
}  // namespace millrace::preprocess
