// SPDX-License-Identifier: Apache-2.0
#include "output/space_guard.hpp"

#include <cstdint>
#include <iostream>

#include <millrace/error.hpp>
#include <millrace/io/atomic_file.hpp>

#include "output/disk_room.hpp"
#include "support/child_process.hpp"
#include "support/resume_fault.hpp"
#include "support/small_disk.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using test::file_set;
using testing::HasSubstr;

/// The input has 6 MB of text, which gives 12 MB of ids. Bad records make up 200 kB of the text.
class SpaceGuard : public test::resume_fault {
 protected:
  SpaceGuard() {
    std::string text;
    for (int i = 0; text.size() < 6'000'000; ++i) {
      text += i % 16 == 3 ? "{broken " + std::string(200, 'b')
                          : "{\"text\": \"" + std::string(random_() % 700, 't') + "\"}";
      text += '\n';
    }
    add("a.jsonl", text);
    flags_ = {"--on-bad-record", "quarantine"};
  }

  std::string free_kib(std::uintmax_t kib) const { return "size=" + std::to_string(kib) + "k"; }

  void expect_in_child(const std::function<void()>& work) {
    const int status = test::in_child([&] {
      if (!test::enter_mount_namespace()) return test::cannot_try;
      work();
      return HasFailure() ? 1 : 0;
    });
    if (status == test::cannot_try) GTEST_SKIP() << "NOT tested: may not mount a small tmpfs here";
    EXPECT_EQ(status, 0);
  }
};

// The run must not wait until the disk is full. It reports the missing space early, after about 1
// MiB of its 6 MB of input.
TEST_F(SpaceGuard, TellsEarlyThatADiskWillBeFull) {
  const file_set wanted = undisturbed();
  expect_in_child([&] {
    ASSERT_TRUE(test::mount_memory(out(), free_kib(4000)));
    const auto result = run({}, {});
    expect_sentence(result, out().string() + ": not enough disk space for the rest of the output");
    EXPECT_THAT(result.err, testing::ContainsRegex(
                                "[0-9]+ bytes are needed, [0-9]+ are free, [0-9]+ are missing; "
                                "free disk space, then run the command again with --resume"));
    EXPECT_LT(fs::file_size(partial("bin")), 3'400'000U);  // the first MiB and a few blocks
    EXPECT_GT(fs::space(out()).available, 500'000U) << "it was full";
    ASSERT_TRUE(test::mount_memory(out(), "size=64m", MS_REMOUNT));
    const auto again = run({"--resume"}, {});
    ASSERT_EQ(again.status, 0) << again.err;
    expect_files(wanted);
    ASSERT_EQ(::umount(out().c_str()), 0);
  });
}

// The same disk is large enough for a run that ends early, which the forecast must know.
TEST_F(SpaceGuard, ForecastsNoMoreThanTheTokensOfARun) {
  flags_ = {"--on-bad-record", "quarantine", "--max-tokens", "1200000"};
  const file_set wanted = undisturbed();
  expect_in_child([&] {
    ASSERT_TRUE(test::mount_memory(out(), free_kib(4000)));
    const auto result = run({}, {});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
    ASSERT_EQ(::umount(out().c_str()), 0);
  });
}

// A run reserves space. The reservation must not make the run refuse a disk that is large enough.
// The run must also free the reserved space that it does not use.
TEST_F(SpaceGuard, RefusesNoDiskThatIsLargeEnough) {
  for (const char* partitions : {"1", "3"}) {
    flags_ = {"--on-bad-record", "quarantine", "--partitions", partitions};
    const file_set wanted = undisturbed();
    std::uintmax_t bytes = 0;
    for (const auto& [name, contents] : wanted) bytes += contents.size() + 4096;
    const std::uintmax_t copies = *partitions == '1' ? 1 : 2;
    expect_in_child([&] {
      const std::uintmax_t enough =
          copies * bytes / 1024 + 500;  // 500 KiB for the journal and reserved space
      for (std::uintmax_t kib = enough; kib < enough + 4000; kib += 1300) {
        SCOPED_TRACE(kib);
        ASSERT_TRUE(test::mount_memory(out(), free_kib(kib)));
        const auto result = run({}, {});
        ASSERT_EQ(result.status, 0) << result.err;
        expect_files(wanted);
        EXPECT_LT(fs::space(out()).capacity - fs::space(out()).available, bytes + 8192);
        ASSERT_EQ(::umount(out().c_str()), 0);
      }
    });
  }
}

// The partitions fit on the disk, but the joined dataset does not. The run must report this before
// it writes the first byte of the joined dataset, even if very little space is missing.
TEST_F(SpaceGuard, TellsBeforePartitionsAreJoinedThatTheWholeDoesNotFit) {
  flags_ = {"--on-bad-record", "quarantine", "--partitions", "3"};
  const file_set wanted = undisturbed();
  std::uintmax_t bytes = 0;
  for (const auto& [name, contents] : wanted) bytes += contents.size();
  expect_in_child([&] {
    bool fits = false;
    int refusals = 0;
    for (std::uintmax_t kib = bytes * 15 / 10 / 1024; !fits; kib += 400) {
      SCOPED_TRACE(kib);
      ASSERT_LT(kib, bytes * 21 / 10 / 1024 + 500) << "that would do";
      ASSERT_TRUE(test::mount_memory(out(), free_kib(kib)));
      auto result = run({}, {});
      fits = result.status == 0;
      if (!fits) {
        ++refusals;
        expect_sentence(result, "not enough disk space for ");
        expect_sentence(result,
                        " are missing; free disk space, then run the command again with --resume");
        EXPECT_EQ(fs::file_size(partial("bin")), 0U);
        ASSERT_TRUE(test::mount_memory(out(), "size=64m", MS_REMOUNT));
        result = run({"--resume"}, {});
      }
      EXPECT_EQ(result.status, 0) << result.err;
      expect_files(wanted);
      ASSERT_EQ(::umount(out().c_str()), 0);
      if (HasFailure()) return;
    }
    EXPECT_GT(refusals, 5);
  });
}

TEST_F(SpaceGuard, RefusesNoDiskForALineThatIsNearlyAll) {
  std::string words;
  while (words.size() < 20'000'000) words += "some words ";
  inputs_ = {};
  add("a.jsonl",
      test::good_lines(0, 9) + "{\"text\": \"" + words + "\"}\n" + test::good_lines(9, 99));
  const file_set wanted = undisturbed();
  expect_in_child([&] {
    ASSERT_TRUE(test::mount_memory(out(), "size=60m"));
    const auto result = run({}, {});
    ASSERT_EQ(result.status, 0) << result.err;
    expect_files(wanted);
    ASSERT_EQ(::umount(out().c_str()), 0);
  });
}

// A file system in memory fills reserved space with zeros, which takes as long as writing it.
TEST_F(SpaceGuard, ReservesNothingInMemoryButComparesWithWhatIsFree) {
  expect_in_child([&] {
    ASSERT_TRUE(test::mount_memory(out(), "size=8m"));
    {
      io::atomic_file file(out() / "x");
      const auto reserve = [&](std::uint64_t bytes) {
        const room_claim claim{&file, bytes};
        reserve_all({&claim, 1}, out(), "a file", "free some");
      };
      const std::uintmax_t before = fs::space(out()).available;
      reserve(6 << 20);
      EXPECT_EQ(fs::space(out()).available, before);
      EXPECT_THROW(reserve(9 << 20), error);
    }
    ASSERT_EQ(::umount(out().c_str()), 0);
  });
}

TEST_F(SpaceGuard, ComparesAJobOfManyTasksWithWhatIsFree) {
  expect_in_child([&] {
    ASSERT_TRUE(test::mount_memory(out(), "size=10m"));
    const auto refusal = [&](std::uint64_t output_bytes, double growth) -> std::string {
      try {
        expect_room_for_whole(out() / "x", output_bytes, growth);
        return "";
      } catch (const error& e) {
        return e.what();
      }
    };
    // The parts now have 1 MB, and the job still needs 7 MB. The parts will grow by 3 MB, and the
    // merged dataset needs 4 MB.
    EXPECT_EQ(refusal(1'000'000, 3), "");
    EXPECT_THAT(refusal(1'000'000, 5),
                HasSubstr("dataset merged from them): 11000000 bytes are needed, "));
    test::write_text(out() / "parts", std::string(4'000'000, 'p'));
    EXPECT_THAT(refusal(1'000'000, 3), HasSubstr("): 7000000 bytes are needed, "));
    ASSERT_EQ(::umount(out().c_str()), 0);
  });
}

}  // namespace
}  // namespace millrace::preprocess
