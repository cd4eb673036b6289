// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/pinned_pool.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/io/detail/unique_fd.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "unit/loader/memory/fake_system.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr std::size_t mib = std::size_t{1} << 20;

std::string refused(const pool_options& options) {
  try {
    const pinned_pool pool(options);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

/// Returns the row of a report whose `asked` equals the argument, or an empty row.
grant row(const pool_report& report, const std::string& asked) {
  for (const grant& g : report.grants) {
    if (g.asked == asked) return g;
  }
  return {};
}

/// Allocates memory like the CUDA runtime, but with bad alignment.
struct fake_cuda_memory {
  int taken = 0;
  int given_back = 0;
  bool refuse = false;

  pinned_memory_hook hook() {
    return {this,
            [](void* context, std::size_t bytes, std::string& why) -> void* {
              auto& self = *static_cast<fake_cuda_memory*>(context);
              if (self.refuse) {
                why = "no CUDA device is usable (error 35)";
                return nullptr;
              }
              ++self.taken;
              auto* const block = static_cast<std::byte*>(std::malloc(bytes + 16));
              return block + 16;
            },
            [](void* context, void* memory) {
              ++static_cast<fake_cuda_memory*>(context)->given_back;
              std::free(static_cast<std::byte*>(memory) - 16);
            }};
  }
};

TEST(PinnedPool, SlotsAreAlignedAndApart) {
  for (const std::size_t alignment : {std::size_t{64}, std::size_t{4096}, 2 * mib}) {
    const pinned_pool pool({.slots = 5, .slot_bytes = 70'001, .alignment = alignment});
    ASSERT_EQ(pool.slots(), 5U);
    const std::byte* end = nullptr;
    for (std::size_t i = 0; i < pool.slots(); ++i) {
      const auto slot = pool.slot(i);
      EXPECT_EQ(slot.size(), 70'001U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot.data()) % alignment, 0U);
      EXPECT_TRUE(end == nullptr || slot.data() >= end);
      end = slot.data() + slot.size();
      EXPECT_LE(end, pool.bytes().data() + pool.bytes().size());
    }
    // Writing to a slot must not change any other slot.
    for (std::size_t i = 0; i < pool.slots(); ++i) {
      std::ranges::fill(pool.slot(i), std::byte(i + 1));
    }
    for (std::size_t i = 0; i < pool.slots(); ++i) {
      EXPECT_TRUE(
          std::ranges::all_of(pool.slot(i), [&](std::byte b) { return b == std::byte(i + 1); }))
          << "slot " << i;
    }
  }
}

TEST(PinnedPool, BeginsAsZeros) {
  const pinned_pool pool({.slots = 2, .slot_bytes = 3 * mib});
  EXPECT_TRUE(std::ranges::all_of(pool.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(PinnedPool, SaysWhyOfEveryKind) {
  const pinned_pool pool({.slots = 4, .slot_bytes = mib});
  const pool_report& report = pool.report();
  ASSERT_FALSE(report.grants.empty());
  EXPECT_EQ(report.grants.front().asked, "cuda");
  EXPECT_THAT(report.grants.front().why, HasSubstr("no hook"));
  for (const grant& g : report.grants) EXPECT_FALSE(g.why.empty()) << g.asked;
  EXPECT_EQ(row(report, name_of(report.granted)).granted, "yes");
  EXPECT_THAT(report.text(), HasSubstr("4 slots of 1048576 bytes, 4194304 in all, granted " +
                                       std::string(name_of(report.granted))));
}

TEST(PinnedPool, TakesMemoryOfCudaFirstAndGivesItBack) {
  fake_cuda_memory cuda;
  {
    const pinned_pool pool({.slots = 3, .slot_bytes = 5000, .cuda = cuda.hook(), .node = 0});
    EXPECT_EQ(pool.kind(), memory_kind::cuda);
    EXPECT_TRUE(pool.report().locked);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.slot(2).data()) % 4096, 0U);
    std::ranges::fill(pool.bytes(), std::byte{1});  // ASan checks that all bytes are accessible
    EXPECT_EQ(cuda.taken, 1);
    EXPECT_FALSE(row(pool.report(), "memory of NUMA node 0").why.empty());
  }
  EXPECT_EQ(cuda.given_back, 1);
}

TEST(PinnedPool, GoesOnWithoutCuda) {
  fake_cuda_memory cuda{.refuse = true};
  const pinned_pool pool({.slots = 1, .slot_bytes = 4096, .cuda = cuda.hook()});
  EXPECT_GT(pool.kind(), memory_kind::cuda);
  EXPECT_EQ(row(pool.report(), "cuda").granted, "no");
  EXPECT_EQ(row(pool.report(), "cuda").why, "no CUDA device is usable (error 35)");
  EXPECT_EQ(cuda.given_back, 0);
}

TEST(PinnedPool, TriesNothingBetterThanIsAskedFor) {
  fake_cuda_memory cuda;
  const pinned_pool pool(
      {.slots = 4, .slot_bytes = mib, .best = memory_kind::plain, .cuda = cuda.hook()});
  EXPECT_EQ(pool.kind(), memory_kind::plain);
  EXPECT_EQ(cuda.taken, 0);
  ASSERT_EQ(pool.report().grants.size(), 5U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(pool.report().grants[i].granted, "no");
    EXPECT_THAT(pool.report().grants[i].why, HasSubstr("not requested"));
  }
}

TEST(PinnedPool, HoldsItsBudgetWithTheNumbers) {
  EXPECT_THAT(refused({.slots = 3, .slot_bytes = 100 * mib}),
              HasSubstr("3 slots of 104857600 bytes, aligned to 4096, does not fit its budget of "
                        "268435456 bytes"));
  // With one more byte, a slot needs two pages instead of one.
  EXPECT_EQ(refused({.slots = 4, .slot_bytes = 4096, .budget_bytes = 16384}), "accepted");
  EXPECT_THAT(refused({.slots = 4, .slot_bytes = 4097, .budget_bytes = 16384}),
              HasSubstr("does not fit its budget of 16384 bytes"));
}

TEST(PinnedPool, RefusesNonsense) {
  constexpr auto most = ~std::size_t{0};
  EXPECT_THAT(refused({.slots = 0, .slot_bytes = 1}), HasSubstr("0 slots"));
  EXPECT_THAT(refused({.slots = 1, .slot_bytes = 0}), HasSubstr("of 0 bytes"));
  EXPECT_THAT(refused({.slots = 1, .slot_bytes = 1, .alignment = 96}), HasSubstr("power of two"));
  EXPECT_THAT(refused({.slots = 1, .slot_bytes = 1, .alignment = 4 * mib}),
              HasSubstr("64 to 2097152"));
  for (const std::size_t slots : {std::size_t{1}, std::size_t{4096}, most / 2, most}) {
    for (const std::size_t bytes : {most, most - 4096, most / 2, most / 4096}) {
      // This is valid, but it is more memory than the machine has.
      if (slots == 1 && bytes == most / 4096) continue;
      EXPECT_THAT(refused({.slots = slots, .slot_bytes = bytes, .budget_bytes = most / 2}),
                  HasSubstr("does not fit"))
          << slots << " slots of " << bytes;
    }
  }
}

// A pool that is larger than the available memory must be refused. Otherwise, the allocation would
// succeed, and the kernel would kill the process when it touches the memory.
TEST(PinnedPool, SaysThatThereIsNoSuchMemory) {
  test::fake_system system;
  system.put("proc/meminfo", "MemTotal:  9999 kB\nMemAvailable:    1000 kB\n");
  try {
    const pinned_pool pool(
        {.slots = 2, .slot_bytes = mib, .best = memory_kind::thp, .files = system.files()});
    FAIL() << "accepted";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOMEM);
    EXPECT_THAT(e.what(), HasSubstr("a pinned pool of 2 slots, 2097152 bytes in all, but "
                                    "MemAvailable leaves 1024000 bytes"));
  }
}

TEST(PinnedPool, TakesTransparentHugePagesWhereThereAreSome) {
  const std::string enabled =
      read_system_file("/sys/kernel/mm/transparent_hugepage/enabled").value_or("[never]");
  if (enabled.find("[never]") != std::string::npos) {
    GTEST_SKIP() << "this machine has no transparent huge pages: " << enabled;
  }
  const pinned_pool pool({.slots = 4, .slot_bytes = 4 * mib, .best = memory_kind::thp});
  const pool_report& report = pool.report();
  if (report.huge_bytes == 0) GTEST_SKIP() << "none to be had now: " << report.text();
  EXPECT_EQ(row(report, "thp").granted, report.huge_bytes >= 8 * mib ? "yes" : "no");
  EXPECT_THAT(row(report, "thp").why, HasSubstr("bytes are in huge pages"));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.slot(0).data()) % (2 * mib), 0U);
}

TEST(PinnedPool, GoesOnWhereTransparentHugePagesAreDisabled) {
  const int result = test::in_child([] {
    if (::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return test::cannot_try;
    const pinned_pool pool({.slots = 4, .slot_bytes = 4 * mib, .best = memory_kind::thp});
    const grant thp = row(pool.report(), "thp");
    std::ranges::fill(pool.bytes(), std::byte{7});
    if (pool.kind() <= memory_kind::thp || pool.report().huge_bytes != 0) return 1;
    const bool said = thp.why.find("PR_SET_THP_DISABLE") != std::string::npos ||
                      thp.why.find("enabled is never") != std::string::npos;
    return thp.granted == "no" && said ? 0 : 2;
  });
  if (result == test::cannot_try) GTEST_SKIP() << "prctl(PR_SET_THP_DISABLE) is refused here";
  EXPECT_EQ(result, 0);
}

TEST(PinnedPool, SaysThatHugePagesAreSwitchedOff) {
  test::fake_system system;
  system.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_THAT(detail::why_no_thp(system.files()), HasSubstr("enabled is never"));
  test::fake_system none;
  EXPECT_THAT(detail::why_no_thp(none.files()), HasSubstr("has no transparent huge pages"));
}

// An ordinary user may lock only a limited amount of memory. A pool above this limit must be
// reported as not locked, but must not fail.
TEST(PinnedPool, GoesOnWhereNothingMayBeLocked) {
  const int result = test::in_child([] {
    const ::rlimit limit{65536, 65536};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return test::cannot_try;
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
      return test::cannot_try;
    }
    const pinned_pool pool({.slots = 4, .slot_bytes = mib, .best = memory_kind::locked});
    std::ranges::fill(pool.bytes(), std::byte{7});
    const grant lock = row(pool.report(), "mlock");
    if (pool.kind() != memory_kind::plain || pool.report().locked || lock.granted != "no") return 1;
    if (lock.why.find("mlock refused 4194304 bytes: ") == std::string::npos) return 2;
    if (lock.why.find("RLIMIT_MEMLOCK is 65536 bytes") == std::string::npos) return 3;
    // A pool within the limit is locked.
    const pinned_pool small({.slots = 2, .slot_bytes = 4096, .best = memory_kind::locked});
    return small.kind() == memory_kind::locked && small.report().locked ? 0 : 4;
  });
  if (result == test::cannot_try) GTEST_SKIP() << "may not become another user here";
  EXPECT_EQ(result, 0);
}

const std::filesystem::path huge_pool_folder = "/sys/kernel/mm/hugepages/hugepages-2048kB";

std::string huge_pool(const char* file) {
  return read_system_file(huge_pool_folder / file).value_or("");
}

// A lock between test processes. The machine has only one pool of huge pages, so tests that depend
// on its contents must run one at a time.
class huge_pool_turn {
 public:
  huge_pool_turn()
      : pool_(::open((huge_pool_folder / "nr_hugepages").c_str(), O_RDONLY | O_CLOEXEC)) {
    if (pool_) ::flock(pool_.get(), LOCK_EX);
  }

 private:
  io::unique_fd pool_;
};

TEST(PinnedPool, GoesOnWithAnEmptyPoolOfHugePages) {
  const huge_pool_turn turn;
  if (const std::string free = huge_pool("free_hugepages"); free != "0") {
    GTEST_SKIP() << "this machine's pool of 2 MiB pages is not empty, or it has none: " << free;
  }
  const pinned_pool pool({.slots = 4, .slot_bytes = mib, .best = memory_kind::hugetlb});
  EXPECT_GT(pool.kind(), memory_kind::hugetlb);
  const grant row_of = row(pool.report(), "hugetlb");
  EXPECT_EQ(row_of.granted, "no");
  EXPECT_THAT(row_of.why, HasSubstr("mmap refused 2 huge pages of 2 MiB"));
  EXPECT_THAT(row_of.why, HasSubstr("the pool has 0 free of " + huge_pool("nr_hugepages")));
}

// Reserves huge pages for the duration of a test.
class huge_page_pool {
 public:
  explicit huge_page_pool(int pages) : before_(huge_pool("nr_hugepages")) {
    set(std::to_string(std::atoi(before_.c_str()) + pages));
  }
  huge_page_pool(const huge_page_pool&) = delete;
  huge_page_pool& operator=(const huge_page_pool&) = delete;
  ~huge_page_pool() { set(before_); }

 private:
  static void set(const std::string& pages) {
    std::ofstream("/proc/sys/vm/nr_hugepages") << pages << std::flush;
  }
  std::string before_;
};

TEST(PinnedPool, TakesHugePagesOfThePool) {
  if (huge_pool("nr_hugepages").empty() || ::access("/proc/sys/vm/nr_hugepages", W_OK) != 0) {
    GTEST_SKIP() << "only root may make a pool of huge pages, where the kernel has them";
  }
  const huge_pool_turn turn;
  const std::string before = huge_pool("nr_hugepages");
  {
    const huge_page_pool made(4);
    if (std::atoi(huge_pool("free_hugepages").c_str()) < 2) {
      GTEST_SKIP() << "the kernel found no free 2 MiB of memory for its pool of huge pages";
    }
    const pinned_pool pool({.slots = 3, .slot_bytes = mib, .best = memory_kind::hugetlb});
    EXPECT_EQ(pool.kind(), memory_kind::hugetlb) << pool.report().text();
    EXPECT_TRUE(pool.report().locked);
    EXPECT_EQ(pool.report().huge_bytes, 3 * mib);
    EXPECT_THAT(row(pool.report(), "hugetlb").why, HasSubstr("2 huge pages of 2 MiB"));
    EXPECT_EQ(pool.report().grants.back().asked, "hugetlb");  // no other kind of memory was tried
    std::ranges::fill(pool.bytes(), std::byte{7});
  }
  EXPECT_EQ(huge_pool("nr_hugepages"), before);
}

TEST(PinnedPool, TakesNoHugePageOfThePoolForLittle) {
  const pinned_pool pool({.slots = 1, .slot_bytes = mib, .best = memory_kind::hugetlb});
  EXPECT_THAT(row(pool.report(), "hugetlb").why, HasSubstr("less than one huge page"));
  EXPECT_THAT(row(pool.report(), "thp").why, HasSubstr("less than one huge page"));
}

TEST(PinnedPool, AsksForANodeAndSaysWhatCameOfIt) {
  for (const int node : {0, 1000, 4096}) {
    const pinned_pool pool({.slots = 2, .slot_bytes = mib, .best = memory_kind::thp, .node = node});
    const grant got = row(pool.report(), "memory of NUMA node " + std::to_string(node));
    EXPECT_THAT(got.why, HasSubstr("mbind")) << node;
    EXPECT_TRUE(node == 0 || got.granted == "no") << node;
  }
}

// A write past the last slot must hit a guard page, not other memory.
TEST(PinnedPool, NothingIsTouchedBesideTheSlab) {
  const int result = test::in_child([] {
    const pinned_pool pool({.slots = 1, .slot_bytes = 4096, .best = memory_kind::thp});
    volatile std::byte* const behind = pool.slot(0).data() + pool.slot(0).size();
    *behind = std::byte{1};
    return 0;
  });
  EXPECT_NE(result, 0);
}

TEST(PinnedPool, ServesDirectReads) {
  const test::temp_folder folder(".");
  std::string text(12'288, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  test::write_text(folder / "file", text);
  const int fd = ::open((folder / "file").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (fd < 0) GTEST_SKIP() << "this file system has no direct reads: " << std::strerror(errno);
  const pinned_pool pool({.slots = 3, .slot_bytes = 4096});
  for (std::size_t i = 0; i < pool.slots(); ++i) {
    const auto slot = pool.slot(i);
    ASSERT_EQ(::pread(fd, slot.data(), slot.size(), static_cast<::off_t>(i * 4096)), 4096)
        << std::strerror(errno);
    EXPECT_EQ(std::memcmp(slot.data(), text.data() + i * 4096, 4096), 0);
  }
  ::close(fd);
}

TEST(PinnedPool, EndsOnAnotherThread) {
  auto pool = std::make_unique<pinned_pool>(pool_options{.slots = 2, .slot_bytes = mib});
  std::jthread([pool = std::move(pool)] { std::ranges::fill(pool->slot(1), std::byte{1}); }).join();
}

}  // namespace
}  // namespace millrace::loader
