// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/stage.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

TEST(Clock, GoesAsTheWallsDoes) {
  using std::chrono::system_clock;
  const auto before = system_clock::now();
  const std::int64_t begin = now_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const std::int64_t end = now_ns();
  const std::chrono::nanoseconds wall = system_clock::now() - before;
  EXPECT_LE(static_cast<double>(end - begin), 1.001 * static_cast<double>(wall.count()));
  EXPECT_GE(end - begin, 199'000'000);
}

// Each thread publishes its time, and compares the time that another thread has published with its
// own. The published time must never be in the future, except for a possible difference between the
// counters of two processors.
TEST(Clock, IsOneForAllThreads) {
  std::atomic<std::int64_t> last = now_ns();
  std::atomic<std::int64_t> worst = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 50'000; ++k) {
          const std::int64_t seen = last.load();
          const std::int64_t now = now_ns();
          if (seen - now > worst.load()) worst = seen - now;
          last = now;
        }
      });
    }
  }
  EXPECT_LE(worst.load(), 1'000);
}

}  // namespace
}  // namespace millrace::loader
