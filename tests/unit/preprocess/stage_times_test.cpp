// SPDX-License-Identifier: Apache-2.0
#include "process/stage_times.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace millrace::preprocess {
namespace {

using stage = stage_clock::stage;

TEST(SlowestStage, IsTheOneThatWasBusyMost) {
  EXPECT_EQ(slowest_stage({.read = 5, .write = 2}, 10, 1).name, "read");
  EXPECT_EQ(slowest_stage({.read = 5, .write = 6}, 10, 1).name, "write");
  EXPECT_EQ(slowest_stage({.write = 6, .sync = 7}, 10, 1).name, "sync");
  EXPECT_DOUBLE_EQ(slowest_stage({.read = 5}, 10, 4).busy_part, 0.5);
}

// Encoding is shared among the workers. If eight workers are half busy and the reader is always
// busy, the workers wait for the reader.
TEST(SlowestStage, SharesEncodingAmongTheWorkers) {
  const stage_times busy{.read = 9, .encode = 40};
  EXPECT_EQ(slowest_stage(busy, 10, 8).name, "read");
  EXPECT_EQ(slowest_stage(busy, 10, 4).name, "encode");
  EXPECT_DOUBLE_EQ(slowest_stage(busy, 10, 4).busy_part, 1.0);
}

// Several workers read spans at the same time, so this reading is shared among the workers. In
// contrast, there is only one reader.
TEST(SlowestStage, SharesTheReadingOfSpansAmongTheWorkers) {
  const stage_times busy{.read = 1, .read_spans = 8, .encode = 24};
  EXPECT_EQ(slowest_stage(busy, 10, 4).name, "encode");
  EXPECT_DOUBLE_EQ(slowest_stage(busy, 10, 4).busy_part, 0.6);
  EXPECT_EQ(slowest_stage({.read = 1, .read_spans = 8}, 10, 4).name, "read_spans");
  EXPECT_DOUBLE_EQ(slowest_stage({.read = 1, .read_spans = 8}, 10, 4).busy_part, 0.2);
  EXPECT_EQ(slowest_stage({.read = 1, .read_spans = 8}, 10, 16).name, "read");
}

// Serial stages are shared among the processes. There are four processes, with one reader and two
// workers each. Together, the readers were busy for longer than the run took, but the run still
// waited for the workers.
TEST(SlowestStage, SharesWhatIsSerialAmongTheProcesses) {
  const stage_times busy{.read = 20, .encode = 64, .write = 12, .sync = 4};
  EXPECT_EQ(slowest_stage(busy, 10, 8, 4).name, "encode");
  EXPECT_DOUBLE_EQ(slowest_stage(busy, 10, 8, 4).busy_part, 0.8);
  EXPECT_EQ(slowest_stage({.read = 36, .encode = 64}, 10, 8, 4).name, "read");
  EXPECT_DOUBLE_EQ(slowest_stage({.read = 36, .encode = 64}, 10, 8, 4).busy_part, 0.9);
}

TEST(StageTimes, AddUpStageByStage) {
  stage_times sum{.read = 1, .read_spans = 2, .encode = 3, .write = 4, .sync = 5};
  sum += {.read = 10, .read_spans = 20, .encode = 30, .write = 40, .sync = 50};
  EXPECT_EQ(sum.read, 11);
  EXPECT_EQ(sum.read_spans, 22);
  EXPECT_EQ(sum.encode, 33);
  EXPECT_EQ(sum.write, 44);
  EXPECT_EQ(sum.sync, 55);
}

TEST(SlowestStage, HasNoNameWhereNothingWasTimed) {
  EXPECT_EQ(slowest_stage({}, 10, 4).name, "");
  EXPECT_EQ(slowest_stage({.read = 1}, 0, 4).name, "");
}

TEST(StageClock, AddsUpEachStageOverThreads) {
  constexpr std::chrono::milliseconds pause{20};
  stage_clock clock;
  {
    const auto timed = clock.time(stage::read);
    std::this_thread::sleep_for(pause);
    EXPECT_EQ(clock.busy().read, 0) << "it counts when it ends";
  }
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto timed = clock.time(stage::encode);
      std::this_thread::sleep_for(pause);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const stage_times busy = clock.busy();
  EXPECT_GE(busy.read, 0.02);
  EXPECT_GE(busy.encode, 0.08);
  EXPECT_EQ(busy.write, 0);
  EXPECT_EQ(busy.sync, 0);
}

}  // namespace
}  // namespace millrace::preprocess
