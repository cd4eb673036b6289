// SPDX-License-Identifier: Apache-2.0

#include <sched.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run/pipeline.hpp"
#include "run/run_options.hpp"
#include "run/usable_resources.hpp"
#include "support/paths.hpp"
#include "support/tokenizers.hpp"

namespace millrace::preprocess {
namespace {

namespace fs = std::filesystem;
using testing::Eq;
using testing::Optional;

// A folder tree like the kernel's /proc and /sys, with the files that a test writes.
class ControlGroups : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  fs::path root() const { return folder_.path(); }

  test::temp_folder folder_;
};

TEST_F(ControlGroups, LimitNothingWhereThereAreNone) {
  EXPECT_THAT(control_group_cores(root()), Eq(std::nullopt));
  EXPECT_EQ(usable_cores(root()), usable_cores(root() / "nowhere"));
}

TEST_F(ControlGroups, OfVersion2SayQuotaAndPeriod) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_THAT(control_group_cores(root()), Optional(1.5));
}

TEST_F(ControlGroups, OfVersion2MayHaveNoLimit) {
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_THAT(control_group_cores(root()), Eq(std::nullopt));
}

// The kernel enforces the limit of every level, so the smallest limit counts, whatever its level.
TEST_F(ControlGroups, AboveLimitToo) {
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
  EXPECT_THAT(control_group_cores(root()), Optional(2.0));
}

// The limits of a container are found at the root. A container without its own cgroup namespace
// sees the host's path of its cgroup, but finds the files of that cgroup in the root folder.
TEST_F(ControlGroups, OfAContainerAreFoundAtTheRoot) {
  write("proc/self/cgroup", "0::/docker/0123abcd\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_THAT(control_group_cores(root()), Optional(3.0));
}

TEST_F(ControlGroups, OfVersion1SayQuotaAndPeriodInTwoFiles) {
  for (const std::string folder : {"cpu,cpuacct", "cpu"}) {
    write("proc/self/cgroup", "7:memory:/x\n4:cpu,cpuacct:/job\n3:cpuset:/x\n0::/\n");
    write("sys/fs/cgroup/" + folder + "/job/cpu.cfs_quota_us", "50000\n");
    write("sys/fs/cgroup/" + folder + "/job/cpu.cfs_period_us", "100000\n");
    EXPECT_THAT(control_group_cores(root()), Optional(0.5)) << folder;
    fs::remove_all(root() / "sys");
  }
}

TEST_F(ControlGroups, OfVersion1MayHaveNoLimit) {
  write("proc/self/cgroup", "4:cpu:/\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(control_group_cores(root()), Eq(std::nullopt));
}

TEST_F(ControlGroups, OfBothVersionsLimitTogether) {
  write("proc/self/cgroup", "4:cpu:/v1\n0::/v2\n");
  write("sys/fs/cgroup/cpu/v1/cpu.cfs_quota_us", "400000\n");
  write("sys/fs/cgroup/cpu/v1/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/unified/v2/cpu.max", "250000 100000\n");
  EXPECT_THAT(control_group_cores(root()), Optional(2.5));
}

TEST_F(ControlGroups, OfOtherControllersDoNotCount) {
  write("proc/self/cgroup", "4:cpuset,cpuacct:/job\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_THAT(control_group_cores(root()), Eq(std::nullopt));
}

TEST_F(ControlGroups, LimitNothingWhereTheirFilesMakeNoSense) {
  for (const char* text : {"", "0 0\n", "-5 100000\n", "nan nan\n", "100000\n", "x y\n"}) {
    write("proc/self/cgroup", "no colon\n1:cpu\n0::/\n");
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_THAT(control_group_cores(root()), Eq(std::nullopt)) << text;
  }
}

// The result is at least one core and never more than the affinity mask allows. With one and a half
// cores, a second thread can still use half a core.
TEST_F(ControlGroups, GiveAtLeastOneCoreAndNeverMoreThanTheMask) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(usable_cores(root()), 1);
  write("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(usable_cores(root()), usable_cores(root() / "nowhere"));
}

TEST(UsableCores, FollowsTheAffinityMask) {
  ::cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  ::cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_cores("/nowhere"), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(usable_cores("/nowhere"), CPU_COUNT(&before));
}

}  // namespace

namespace {

namespace fs = std::filesystem;
using testing::Eq;
using testing::Optional;

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

// A folder tree like the kernel's /proc and /sys, with the files that a test writes.
class UsableMemory : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void machine_of(std::uint64_t bytes) const {
    write("proc/meminfo",
          "MemTotal:       " + std::to_string(bytes / 1024) + " kB\nMemFree:        1 kB\n");
  }
  fs::path root() const { return folder_.path(); }

  test::temp_folder folder_;
};

TEST_F(UsableMemory, IsThatOfTheMachineWithoutControlGroups) {
  machine_of(16 * gibibyte);
  EXPECT_THAT(usable_memory(root()), Optional(16 * gibibyte));
}

TEST_F(UsableMemory, IsTheLeastThatAControlGroupAllows) {
  machine_of(16 * gibibyte);
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/memory.max", std::to_string(gibibyte) + "\n");
  write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_THAT(usable_memory(root()), Optional(gibibyte));
}

TEST_F(UsableMemory, KnowsControlGroupsOfVersion1) {
  machine_of(16 * gibibyte);
  write("proc/self/cgroup", "5:memory:/job\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_THAT(usable_memory(root()), Optional(16 * gibibyte));
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(3 * gibibyte) + "\n");
  EXPECT_THAT(usable_memory(root()), Optional(3 * gibibyte));
}

TEST_F(UsableMemory, IsUnknownWhereNothingCanBeRead) {
  EXPECT_THAT(usable_memory(root()), Eq(std::nullopt));
  EXPECT_EQ(default_zstd_window_bytes(1, root()), 2 * gibibyte);
}

TEST_F(UsableMemory, OfThisMachineIsKnown) {
  EXPECT_GT(usable_memory().value_or(0), std::uint64_t{64} << 20);
}

TEST_F(UsableMemory, LetsTheLargestWindowThroughWhereThereIsEnough) {
  machine_of(3 * gibibyte);
  EXPECT_EQ(default_zstd_window_bytes(1, root()), 2 * gibibyte);
}

TEST_F(UsableMemory, KeepsAQuarterForTheRestOfARun) {
  machine_of(gibibyte);
  EXPECT_EQ(default_zstd_window_bytes(1, root()), gibibyte / 4 * 3);
}

TEST_F(UsableMemory, IsSharedByTheProcessesOfAMachine) {
  machine_of(4 * gibibyte);
  EXPECT_EQ(default_zstd_window_bytes(4, root()), gibibyte / 4 * 3);
  EXPECT_EQ(default_zstd_window_bytes(10'000, root()), std::uint64_t{8} << 20)
      << "what every decoder has to support";
}

TEST(RunOptions, HaveNoMoreThreadsThanProcessors) {
  run_options options;
  options.workers = 16;
  EXPECT_EQ(options.threads(), 16) << "the processors are not known";
  options.cores = 2;
  EXPECT_EQ(options.threads(), 2);
  EXPECT_EQ(options.most_blocks(), 6U) << "each block takes memory";
  options.workers = 1;
  EXPECT_EQ(options.threads(), 1);
}

TEST(RunOptions, HaveNoLargerCachesThanTheText) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  const auto with_files = [](const std::vector<std::uint64_t>& sizes) {
    run_options options;
    options.tokenizer_bytes = 40 * mebibyte;
    for (const std::uint64_t size : sizes) {
      options.inputs.push_back({.path = "in.jsonl", .size_bytes = size, .regular = true});
    }
    return options;
  };
  const run_options small = with_files({10 * mebibyte, 5 * mebibyte});
  EXPECT_EQ(small.encoder_cache_bytes(), 16 * mebibyte);
  EXPECT_EQ(encoder_options_of(*test::byte_tokenizer(), small).tokenizer_bytes, 16 * mebibyte);
  EXPECT_EQ(with_files({10 * mebibyte, 50 * mebibyte}).encoder_cache_bytes(), 40 * mebibyte);
  EXPECT_EQ(with_files({100}).encoder_cache_bytes(), mebibyte + 100);

  run_options compressed = with_files({100, 100});
  compressed.inputs[1].compressed_with = compression::gzip;
  EXPECT_EQ(compressed.encoder_cache_bytes(), 40 * mebibyte) << "the size of the text is not known";
  run_options pipe = with_files({100, 0});
  pipe.inputs[1].regular = false;
  EXPECT_EQ(pipe.encoder_cache_bytes(), 40 * mebibyte);
}

}  // namespace

}  // namespace millrace::preprocess
