// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/io_threads.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/detail/memory/one_per_process.hpp>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"
#include "support/sanitized.hpp"

namespace millrace::loader {
namespace {

using namespace std::chrono_literals;

TEST(IoThreads, EveryTaskIsRunOnceWhateverTheThreads) {
  for (const int most : {0, 1, 3}) {
    io_threads pool(most);
    for (const std::size_t count : {0u, 1u, 2u, 100u}) {
      std::vector<std::atomic<int>> runs(count);
      pool.for_each(count, 8, [&](std::size_t i) { ++runs[i]; });
      for (const auto& n : runs) EXPECT_EQ(n, 1);
    }
    EXPECT_LE(pool.running(), most);
  }
}

TEST(IoThreads, NoThreadIsStartedBeforeItIsNeeded) {
  io_threads pool(8);
  pool.for_each(100, 1, [](std::size_t) {});
  pool.for_each(1, 8, [](std::size_t) {});
  EXPECT_EQ(pool.running(), 0);
  pool.for_each(2, 8, [](std::size_t) {});
  EXPECT_EQ(pool.running(), 1);
}

// The two tasks wait for each other, so they can only finish if both run at the same time.
TEST(IoThreads, TasksRunBesideOneAnother) {
  io_threads pool(1);
  std::atomic<int> here{0};
  pool.for_each(2, 2, [&](std::size_t) {
    ++here;
    while (here < 2) std::this_thread::yield();
  });
  EXPECT_EQ(here, 2);
}

// If memory for the requests to helpers cannot be allocated, the caller must run all tasks itself.
// No task may run after the call, because the objects that the task uses may no longer exist.
TEST(IoThreads, AFailedAllocationLeavesNoTaskBehind) {
  bool failed = true;
  for (std::int64_t k = 1; failed; ++k) {
    std::atomic<int> runs{0};
    std::atomic<int> late{0};
    std::atomic<bool> has_returned{false};
    const auto task = [&](std::size_t) { ++(has_returned ? late : runs); };
    io_threads pool(3);
    test::arm({.k = k});
    try {
      pool.for_each(8, 4, task);
    } catch (const std::bad_alloc&) {
    }
    has_returned = true;
    failed = test::disarm() >= k;
    EXPECT_EQ(runs % 8, 0) << k;  // all tasks ran, or none
    std::atomic<int> here{0};
    // A helper can run these tasks only after the earlier requests.
    pool.for_each(2, 2, [&](std::size_t) {
      ++here;
      while (here < 2) std::this_thread::yield();
    });
    EXPECT_EQ(late, 0) << k;
  }
}

TEST(IoThreads, TheFirstOfTheErrorsIsThrownAfterAllHaveEnded) {
  io_threads pool(3);
  std::atomic<int> runs{0};
  try {
    pool.for_each(50, 4, [&](std::size_t i) {
      ++runs;
      if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
    });
    FAIL() << "no error";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "7");
  }
  EXPECT_EQ(runs, 50);
}

TEST(IoThreads, CallersShareThem) {
  io_threads pool(2);
  std::atomic<int> runs{0};
  {
    std::vector<std::jthread> callers;
    callers.reserve(4);
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&] {
        for (int i = 0; i < 50; ++i) pool.for_each(8, 3, [&](std::size_t) { ++runs; });
      });
    }
  }
  EXPECT_EQ(runs, 4 * 50 * 8);
  EXPECT_LE(pool.running(), 2);
}

TEST(IoThreads, IdleTasksRunOneAtATimeAndNotAfterTheEnd) {
  std::atomic<int> at_once{0};
  std::atomic<int> most_at_once{0};
  std::atomic<int> runs{0};
  {
    io_threads pool(4);
    for (int i = 0; i < 20; ++i) {
      pool.when_idle([&] {
        most_at_once = std::max(most_at_once.load(), ++at_once);
        std::this_thread::yield();
        --at_once;
        ++runs;
      });
    }
    while (runs < 5) std::this_thread::yield();
    std::atomic<int> urgent{0};
    pool.for_each(10, 4, [&](std::size_t) { ++urgent; });  // must not wait for the earlier requests
    EXPECT_EQ(urgent, 10);
  }
  EXPECT_EQ(most_at_once, 1);
  EXPECT_LE(runs, 20);
}

// As a loader that is destroyed while its files are still read in the background.
TEST(IoThreads, ATaskMayQueueAnotherDuringTheDestructor) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> ends = false;
    std::latch begun(1);
    auto pool = std::make_unique<io_threads>(4);
    pool->when_idle([&, threads = pool.get()] {
      begun.count_down();
      while (!ends) std::this_thread::yield();
      std::this_thread::sleep_for(5ms);  // the destructor waits for this task by now
      threads->when_idle([] { ADD_FAILURE() << "a task began after the end"; });
    });
    begun.wait();
    ends = true;
    pool.reset();
  }
}

TEST(IoThreads, AProcessHasOnePoolAsLongAsSomebodyUsesIt) {
  const auto one = io_threads::of_process();
  EXPECT_EQ(one, io_threads::of_process());
}

// A child process does not have the threads of its parent. It must neither give them work nor wait
// for them.
TEST(IoThreads, AChildHasAPoolOfItsOwn) {
  if (test::under_thread_sanitizer) {
    GTEST_SKIP() << "the sanitizer lets no child of many threads start one";
  }
  auto one = io_threads::of_process();
  one->for_each(20, 4, [](std::size_t) { std::this_thread::sleep_for(1ms); });
  EXPECT_GT(one->running(), 0);
  EXPECT_EQ(test::in_child([&] {
              auto mine = io_threads::of_process();
              if (mine == one || mine->running() != 0) return 1;
              std::atomic<bool> ran{false};
              mine->when_idle([&] { ran = true; });
              const auto end = std::chrono::steady_clock::now() + 10s;
              while (!ran && std::chrono::steady_clock::now() < end) std::this_thread::yield();
              mine = nullptr;
              one = nullptr;
              return ran ? 0 : 2;
            }),
            0);
  EXPECT_EQ(one, io_threads::of_process());
}

// Takes long to create, as a pool of threads on a busy machine does.
struct slow_to_create {
  slow_to_create() {
    begun = true;
    std::this_thread::sleep_for(100ms);
  }

  const ::pid_t process = ::getpid();
  inline static std::atomic<bool> begun = false;
};

TEST(OnePerProcess, AForkWaitsForItsCreation) {
  std::shared_ptr<slow_to_create> one;
  // This thread outlives the child. One that ended unjoined is a leak to ThreadSanitizer.
  std::latch child_ended(1);
  std::jthread creator([&] {
    one = one_per_process<slow_to_create>();
    child_ended.wait();
  });
  while (!slow_to_create::begun) std::this_thread::yield();
  EXPECT_EQ(test::in_child([&] {
              ::alarm(10);
              const auto mine = one_per_process<slow_to_create>();
              return mine->process == ::getpid() ? 0 : 1;
            }),
            0);
  child_ended.count_down();
  creator.join();
  EXPECT_EQ(one, one_per_process<slow_to_create>());
}

}  // namespace
}  // namespace millrace::loader
