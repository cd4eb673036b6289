// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/named_thread.hpp>

#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/cpu_list.hpp>
#include <millrace/loader/detail/memory/memory_policy.hpp>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::string name_of_thread(::pid_t id) {
  return read_system_file("/proc/self/task/" + std::to_string(id) + "/comm").value_or("gone");
}

TEST(NamedThread, ShowsItsNameToTheSystem) {
  named_thread thread({.name = "mr-test"}, [](const std::stop_token& stop) {
    while (!stop.stop_requested()) std::this_thread::yield();
  });
  EXPECT_EQ(name_of_thread(thread.id()), "mr-test");
  EXPECT_EQ(thread.name(), "mr-test");
  EXPECT_THAT(thread.grants(), IsEmpty());
}

TEST(NamedThread, KeepsTheFirst15BytesOfALongName) {
  std::string seen;
  named_thread thread({.name = "mr-gather-of-rank-12"},
                      [&] { seen = name_of_thread(static_cast<::pid_t>(::syscall(SYS_gettid))); });
  thread.join();
  EXPECT_EQ(seen, "mr-gather-of-ra");
}

TEST(NamedThread, RunsWhereItIsTold) {
  const auto all = allowed_cpus();
  const std::vector<int> last = {all.back()};
  std::vector<int> seen;
  named_thread thread({.name = "mr-pinned", .cpus = last}, [&] { seen = allowed_cpus(); });
  ASSERT_EQ(thread.grants().size(), 1U);
  EXPECT_EQ(thread.grants()[0].asked, "CPUs " + cpu_list_text(last) + " for thread mr-pinned");
  EXPECT_EQ(thread.grants()[0].granted, "yes");
  thread.join();
  EXPECT_EQ(seen, last);
  EXPECT_EQ(allowed_cpus(), all);  // the CPUs of the calling thread do not change
}

// If the setup of the thread fails before its function runs, the constructor must throw.
// If no allocation failed, the tests that make them fail would pass and prove nothing.
TEST(FailKthAllocation, FailsTheSecondOfThree) {
  if (!test::allocations_can_fail) return;
  int thrown = 0;
  test::arm({.k = 2});
  for (int i = 1; i <= 3; ++i) {
    try {
      void* volatile memory = ::operator new(1);
      ::operator delete(memory);
    } catch (const std::bad_alloc&) {
      thrown = 10 * thrown + i;
    }
  }
  EXPECT_EQ(test::disarm(), 3);
  EXPECT_EQ(thrown, 2);
}

TEST(NamedThread, AFailedAllocationIsThrownByTheConstructor) {
  const int status = test::in_child([] {
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      std::atomic<int> runs{0};
      bool has_failed = false;
      test::arm({.k = k});
      try {
        named_thread thread({.name = "mr-a-thread-with-a-long-name", .cpus = {0}, .node = 0},
                            [&] { ++runs; });
        thread.join();
      } catch (const std::bad_alloc&) {
        has_failed = true;
      }
      failed = test::disarm() >= k;
      if (has_failed == (runs == 1)) return 1;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(NamedThread, SaysWhatItWasRefused) {
  const auto all = allowed_cpus();
  std::vector<int> seen;
  named_thread thread({.name = "mr-far", .cpus = {8191}, .node = 1000},
                      [&] { seen = allowed_cpus(); });
  thread.join();
  EXPECT_EQ(seen, all);
  ASSERT_EQ(thread.grants().size(), 2U);
  EXPECT_EQ(thread.grants()[0].granted, "no");
  EXPECT_THAT(thread.grants()[0].why, HasSubstr("sched_setaffinity refused: "));
  EXPECT_EQ(thread.grants()[1].granted, "no");
  EXPECT_THAT(thread.grants()[1].why, HasSubstr("set_mempolicy refused: "));
}

// The kernel silently ignores CPUs that do not exist. The grants must say how many CPUs were set.
TEST(NamedThread, SaysWhatItGotOfWhatItAskedFor) {
  const std::vector<int> some = {allowed_cpus().front(), 8191};
  named_thread thread({.name = "mr-some", .cpus = some}, [] {});
  EXPECT_EQ(thread.grants().at(0).granted, "1 of 2");
}

TEST(NamedThread, StopsAtItsEnd) {
  std::atomic<bool> ended = false;
  {
    const named_thread thread({.name = "mr-stop"}, [&](const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::yield();
      ended = true;
    });
  }
  EXPECT_TRUE(ended);
}

TEST(NamedThread, MovesAndIsEmpty) {
  named_thread none;
  EXPECT_FALSE(none.joinable());
  std::atomic<int> runs = 0;
  none = named_thread({.name = "mr-moved"}, [&] { ++runs; });
  EXPECT_EQ(none.name(), "mr-moved");
  named_thread other(std::move(none));
  other.join();
  EXPECT_EQ(runs, 1);
}

TEST(PreferredNode, IsTheThreadsOnlyWhileItLives) {
  const auto mode = [] {
    int value = -1;
    return ::syscall(SYS_get_mempolicy, &value, nullptr, 0UL, nullptr, 0UL) == 0 ? value : -1;
  };
  const int before = mode();
  {
    const preferred_node near(0);
    if (near.error() != 0) GTEST_SKIP() << "no set_mempolicy here: errno " << near.error();
    EXPECT_EQ(mode(), MPOL_PREFERRED);
    { const preferred_node nested(0); }
    EXPECT_EQ(mode(), MPOL_PREFERRED);
  }
  EXPECT_EQ(mode(), before);
  const preferred_node none(1000);
  EXPECT_EQ(none.error(), EINVAL);
  EXPECT_EQ(mode(), before);
}

}  // namespace
}  // namespace millrace::loader
