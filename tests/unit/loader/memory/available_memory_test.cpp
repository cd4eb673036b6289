// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/available_memory.hpp>

#include <gtest/gtest.h>

#include "unit/loader/memory/fake_system.hpp"

namespace millrace::loader {
namespace {

constexpr const char* meminfo = "MemTotal:       24000000 kB\nMemAvailable:   20000000 kB\n";

TEST(AvailableMemory, IsWhatTheMachineHas) {
  test::fake_system system;
  system.put("proc/meminfo", meminfo);
  const auto room = available_memory(system.files());
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 20'480'000'000U);
  EXPECT_EQ(room->by, "MemAvailable");
}

TEST(AvailableMemory, IsWhatTheTightestGroupLeaves) {
  test::fake_system system;
  system.put("proc/meminfo", meminfo)
      .put("proc/self/cgroup", "1:name=systemd:/x\n0::/jobs/one\n")
      .put("sys/fs/cgroup/jobs/memory.max", "1000000\n")
      .put("sys/fs/cgroup/jobs/memory.current", "700000\n")
      .put("sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file 200000\n")
      .put("sys/fs/cgroup/jobs/one/memory.max", "max\n")
      .put("sys/fs/cgroup/jobs/one/memory.current", "600000\n");
  const auto room = available_memory(system.files());
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 500'000U);
  EXPECT_EQ(room->by, (system.files().sys / "fs/cgroup/jobs").string());
}

// Memory that a cgroup can reclaim counts as available. In this test, all memory of the cgroup is
// used, but most of it is page cache with a dataset, which can be reclaimed.
TEST(AvailableMemory, CountsAllThatAGroupCanLetGoOf) {
  test::fake_system system;
  system.put("proc/meminfo", meminfo)
      .put("proc/self/cgroup", "0::/\n")
      .put("sys/fs/cgroup/memory.max", "1000000\n")
      .put("sys/fs/cgroup/memory.current", "1000000\n")
      .put("sys/fs/cgroup/memory.stat",
           "anon 5\ninactive_file 1000\nactive_file 600000\nslab_reclaimable 20000\n");
  EXPECT_EQ(available_memory(system.files())->bytes, 621'000U);
  system.put("sys/fs/cgroup/memory.stat", "inactive_file 900000\nactive_file 900000\n");
  EXPECT_EQ(available_memory(system.files())->bytes, 1'000'000U) << "more than is used";
}

TEST(AvailableMemory, IsNothingWhereAGroupIsFull) {
  test::fake_system system;
  system.put("proc/meminfo", meminfo)
      .put("proc/self/cgroup", "0::/\n")
      .put("sys/fs/cgroup/memory.max", "1000\n")
      .put("sys/fs/cgroup/memory.current", "5000\n");
  const auto room = available_memory(system.files());
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, 0U);
}

TEST(AvailableMemory, IsNotKnownWithoutFiles) {
  test::fake_system system;
  EXPECT_FALSE(available_memory(system.files()));
  system.put("proc/meminfo", "MemAvailable: lots\n").put("proc/self/cgroup", "");
  EXPECT_FALSE(available_memory(system.files()));
}

TEST(AvailableMemory, IsKnownHere) {
  const auto room = available_memory();
  ASSERT_TRUE(room);
  EXPECT_GT(room->bytes, 0U);
}

}  // namespace
}  // namespace millrace::loader
