// SPDX-License-Identifier: Apache-2.0
#include "run/usable_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/paths.hpp"

namespace millrace::preprocess {
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

}  // namespace
}  // namespace millrace::preprocess
