// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/block_probe.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader {
namespace {

thread_usage fake;
int asked = 0;

thread_usage fake_usage() noexcept {
  ++asked;
  return fake;
}

class BlockProbe : public testing::Test {
 protected:
  BlockProbe() {
    fake = {};
    asked = 0;
    probe_.waited(0);
  }

  block_probe probe_{&fake_usage};
};

TEST_F(BlockProbe, AsksSeldomAboutQuickReads) {
  for (int i = 0; i < 320; ++i) EXPECT_FALSE(probe_.blocked(8'000, 65'536));
  EXPECT_EQ(asked, 1 + 10);
}

// A long read is not slow if its micro-batch is large. So the probe must rarely ask the kernel
// about such a read.
TEST_F(BlockProbe, AsksSeldomAboutLongReadsOfManyBytes) {
  EXPECT_FALSE(probe_.blocked(8'000, 65'536));
  for (int i = 0; i < 31; ++i) EXPECT_FALSE(probe_.blocked(8'000'000, 65'536'000));
  EXPECT_EQ(asked, 1 + 1);
}

TEST_F(BlockProbe, SeesMajorFaults) {
  fake.major_faults += 3;
  EXPECT_TRUE(probe_.blocked(900'000, 65'536));
  EXPECT_EQ(probe_.faults(), 3);
  EXPECT_FALSE(probe_.blocked(900'000, 65'536));  // as slow as before, but the thread did not wait
}

// The probe must detect that the thread slept. A thread that waits for pages that are already being
// read ahead has no major faults, but it sleeps.
TEST_F(BlockProbe, SeesThatTheThreadSlept) {
  fake.voluntary_switches += 1;
  EXPECT_TRUE(probe_.blocked(900'000, 65'536));
}

TEST_F(BlockProbe, DoesNotTakeAWaitForASlotForStorage) {
  for (const std::int64_t wait : {5'000, 90'000, 5'000'000}) {
    fake.voluntary_switches += 1;
    probe_.waited(wait);
    EXPECT_FALSE(probe_.blocked(900'000, 65'536)) << wait;
    fake.voluntary_switches += 1;
    probe_.waited(wait);
    fake.voluntary_switches += 1;
    EXPECT_TRUE(probe_.blocked(900'000, 65'536)) << wait;
    probe_.waited(1'000);  // the wait was for a slot, not for storage
    fake.voluntary_switches += 1;
    EXPECT_TRUE(probe_.blocked(900'000, 65'536)) << wait;
  }
}

// With fast storage, each read is only slightly slow. Once the probe has found a read that waited,
// it must check all reads.
TEST_F(BlockProbe, KeepsLookingWhereOneReadWasKeptWaiting) {
  int found = 0;
  for (int i = 0; i < 320; ++i) {
    fake.voluntary_switches += 1;
    found += probe_.blocked(30'000, 65'536) ? 1 : 0;
  }
  EXPECT_GE(found, 320 - 32);
}

// With the real clock and the real kernel, the probe must distinguish sleep from work.
TEST(BlockProbeForReal, TellsSleepFromWork) {
  block_probe probe(&usage_of_this_thread);
  probe.waited(0);
  std::int64_t slept = 0;
  std::int64_t worked = 0;
  for (int i = 0; i < 40; ++i) {
    const std::int64_t begin = now_ns();
    // If other threads use the processor during the whole sleep, this thread does not really sleep.
    // So repeat until it has slept.
    const std::int64_t switches = usage_of_this_thread().voluntary_switches;
    do {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    } while (usage_of_this_thread().voluntary_switches == switches);
    const std::int64_t middle = now_ns();
    slept += probe.blocked(middle - begin, 65'536) ? 1 : 0;
    while (now_ns() - middle < 300'000) {
    }
    worked += probe.blocked(now_ns() - middle, 65'536) ? 1 : 0;
  }
  EXPECT_EQ(slept, 40);
  EXPECT_EQ(worked, 0);
}

}  // namespace
}  // namespace millrace::loader
