// SPDX-License-Identifier: Apache-2.0
#include "io/uring_reader.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr unsigned ring_setup = 425;  // the same number on every processor architecture
[[maybe_unused]] constexpr unsigned ring_enter = 426;
[[maybe_unused]] constexpr unsigned ring_register = 427;

/// Makes a system call (by default, io_uring_setup) fail with `code` in this process, as containers
/// do with filters.
bool forbid_rings(int code, unsigned call = ring_setup) {
  const ::sock_filter filter[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(::seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(code)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  ::sock_fprog program{std::size(filter), const_cast<::sock_filter*>(filter)};  // NOLINT
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// A file of random bytes in the temporary folder, which may be on a disk or in memory.
class Uring : public testing::Test {
 protected:
  static constexpr std::uint64_t size = 4'000'001;

  Uring() : contents_(size) {
    for (std::byte& b : contents_) b = static_cast<std::byte>(random_());
    test::write_bytes(files_[0].path, contents_);
  }

  std::vector<file_range> random_ranges(std::size_t count, std::uint64_t bytes) {
    std::vector<file_range> ranges(count);
    for (auto& r : ranges) r = {0, random_() % (size - bytes), bytes};
    return ranges;
  }

  /// Gathers these ranges and returns whether the bytes are those of the file.
  bool is_right(range_reader& reader, const std::vector<file_range>& ranges) const {
    std::size_t all = 0;
    for (const file_range& r : ranges) all += r.bytes;
    std::vector<std::byte> memory(all, std::byte{0xAB});
    std::vector<read_request> requests;
    std::size_t at = 0;
    for (const file_range& r : ranges) {
      requests.push_back({r, memory.data() + at});
      at += r.bytes;
    }
    reader.gather(requests);
    return std::ranges::all_of(requests, [&](const read_request& r) {
      return std::memcmp(r.to, contents_.data() + r.from.offset, r.from.bytes) == 0;
    });
  }

  static const grant* find(const reader_report& report, const std::string& asked) {
    const auto at = std::ranges::find(report.grants, asked, &grant::asked);
    return at == report.grants.end() ? nullptr : &*at;
  }

  std::mt19937_64 random_{3};
  test::temp_folder folder_;
  std::vector<data_file> files_{{folder_ / "tokens.bin", size}};
  std::vector<std::byte> contents_;
};

// In a container that forbids io_uring, pread must be used, and the report must say why.
TEST_F(Uring, WhereItIsForbiddenPreadReads) {
  for (const int code : {EPERM, ENOSYS}) {
    const int status = test::in_child([&] {
      if (!forbid_rings(code)) return test::cannot_try;
      io_options options;
      options.back_end = "io_uring";
      const auto reader = make_reader(files_, options);
      if (!is_right(*reader, {{0, 1000, 8192}})) return 1;
      const reader_report report = reader->report();
      if (report.asked != "io_uring" || report.granted != "pread") return 2;
#if defined(MILLRACE_HAS_URING)
      const char* const reason = code == EPERM ? "io_uring_setup: Operation not permitted"
                                               : "io_uring_setup: Function not";
#else
      const char* const reason = "without liburing";
#endif
      if (report.why.find(reason) == std::string::npos) return 3;
      const reader_facts facts = facts_of({{files_[0].path, std::uint64_t{1} << 50}}, {});
      return facts.uring || facts.uring_why.empty() ? 4 : 0;
    });
    if (status == test::cannot_try) GTEST_SKIP() << "this process may not filter its system calls";
    EXPECT_EQ(status, 0) << code;
  }
}

#if defined(MILLRACE_HAS_URING)

class UringReader : public Uring {
 protected:
  void SetUp() override {
    if (const uring_probe probe = probe_uring(); !probe.usable) GTEST_SKIP() << probe.why;
  }
  std::unique_ptr<uring_reader> reader(uring_options ring = {}) const {
    return std::make_unique<uring_reader>(files_, reader_options{}, std::move(ring));
  }
  /// Returns whether the disk of the file allows reads that bypass the page cache.
  bool is_direct() const {
    return static_cast<bool>(open_direct(io::open_read_only(files_[0].path)).fd);
  }
};

// io_uring becomes forbidden after the reader is created, but before the reader creates its ring.
// The reader must then use pread.
TEST_F(UringReader, WhereNoRingIsToBeHadPreadReads) {
  const int status = test::in_child([&] {
    const auto r = reader();
    if (!forbid_rings(EPERM)) return test::cannot_try;
    r->prefetch(random_ranges(10, 8192));
    if (!is_right(*r, random_ranges(10, 8192))) return 1;
    const reader_report report = r->report();
    if (report.granted != "pread") return 2;
    const grant* const ring = find(report, "io_uring");
    return ring != nullptr && ring->granted == "no" && !ring->why.empty() ? 0 : 3;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "this process may not filter its system calls";
  EXPECT_EQ(status, 0);
}

// The kernel may refuse to replace a registered file, so the ring's table keeps the old file. Reads
// must still use the right file.
TEST_F(UringReader, APlaceThatCannotBeGivenAwayServesTheRightFile) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  std::vector<std::byte> others(size, std::byte{0x5A});
  test::write_bytes(folder_ / "others.bin", others);
  files_.push_back({folder_ / "others.bin", size});
  const int status = test::in_child([&] {
    const auto r = reader({.most_files = 1});
    const auto ranges = random_ranges(5, 8192);
    std::vector<std::byte> got(8192);
    const read_request of_others{{1, 4096, 8192}, got.data()};
    r->gather({&of_others, 1});
    if (!std::ranges::equal(got, std::span(others).first(8192))) return 1;
    if (!forbid_rings(ENOMEM, ring_register)) return test::cannot_try;
    for (int i = 0; i < 3; ++i) {
      if (!is_right(*r, ranges)) return 2;
      std::ranges::fill(got, std::byte{});
      r->gather({&of_others, 1});
      if (!std::ranges::equal(got, std::span(others).first(8192))) return 3;
    }
    return r->report().granted == "io_uring" ? 0 : 4;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "this process may not filter its system calls";
  EXPECT_EQ(status, 0);
}

// There are more files than places in the ring's table, and the kernel accepts no reads. The reader
// must give up the ring instead of waiting for it.
TEST_F(UringReader, ARingThatTakesNothingMoreIsGivenUp) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  files_.push_back(files_[0]);
  for (const int code : {EAGAIN, ENOMEM, EPERM}) {
    const int status = test::in_child([&] {
      const auto r = reader({.most_files = 1});
      auto ranges = random_ranges(20, 8192);
      for (std::size_t i = 0; i < ranges.size(); i += 2) ranges[i].file = 1;
      if (!is_right(*r, ranges)) return 1;
      if (!forbid_rings(code, ring_enter)) return test::cannot_try;
      r->prefetch(ranges);
      if (!is_right(*r, ranges)) return 2;
      if (!is_right(*r, random_ranges(20, 20'000))) return 3;
      const reader_report report = r->report();
      const grant* const ring = find(report, "io_uring");
      if (report.granted != "pread" || ring == nullptr) return 4;
      return ring->why.find("millrace abandoned the ring") == std::string::npos ? 5 : 0;
    });
    if (status == test::cannot_try) GTEST_SKIP() << "this process may not filter its system calls";
    EXPECT_EQ(status, 0) << code;
  }
}

TEST_F(UringReader, WithoutLockedMemoryItGoesOnUnregistered) {
  const int status = test::in_child([&] {
    const ::rlimit none{65536, 65536};
    if (::setrlimit(RLIMIT_MEMLOCK, &none) != 0) return test::cannot_try;
    // This limit does not apply to root, so drop all capabilities.
    ::__user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const ::__user_cap_data_struct nothing[_LINUX_CAPABILITY_U32S_3] = {};
    if (::syscall(SYS_capset, &header, nothing) != 0) return test::cannot_try;
    const auto r = reader();
    const auto ranges = random_ranges(50, 8192);
    r->prefetch(ranges);
    if (!is_right(*r, ranges)) return 1;
    const reader_report report = r->report();
    if (report.granted != "io_uring") return 2;
    const grant* const buffers = find(report, "registered buffers");
    if (buffers == nullptr || buffers->granted != "no") return 3;
    return buffers->why.find("at most 64 KiB may be locked") == std::string::npos ? 4 : 0;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "rights and limits cannot be given up here";
  EXPECT_EQ(status, 0);
}

TEST_F(UringReader, KeepsThirtyTwoReadsInFlightAndMore) {
  const auto r = reader();
  const auto ranges = random_ranges(200, 8192);
  r->prefetch(ranges);
  for (std::size_t i = 0; i < ranges.size(); i += 8) {  // groups of 8, like the samples of a batch
    EXPECT_TRUE(is_right(*r, {ranges.begin() + static_cast<std::ptrdiff_t>(i),
                              ranges.begin() + static_cast<std::ptrdiff_t>(i) + 8}));
  }
  const reader_report report = r->report();
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  const grant* const flight = find(report, "64 reads in flight");
  ASSERT_NE(flight, nullptr);
  EXPECT_GE(std::stoi(flight->granted), 32);
}

// Each window must be read only once, whether or not it was announced.
TEST_F(UringReader, ReadsNothingTwice) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  const auto r = reader();
  std::vector<file_range> ranges;
  for (std::uint64_t i = 0; i < 50; ++i) ranges.push_back({0, i * 70'000 + 13, 8192});
  r->prefetch(ranges);
  // Announce and gather these ranges again.
  r->prefetch(std::vector(ranges.begin(), ranges.begin() + 10));
  EXPECT_TRUE(is_right(*r, std::vector(ranges.begin(), ranges.begin() + 10)));
  EXPECT_TRUE(is_right(*r, ranges));
  EXPECT_LE(r->report().bytes_read, 50u * (8192 + 2 * 512));
}

// A range that is announced but never gathered must not hold its slot forever.
TEST_F(UringReader, WhatIsNeverGatheredGivesWay) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  const auto r = reader({.depth = 8, .slots = 32});
  std::vector<file_range> never;
  for (std::uint64_t i = 0; i < 40; ++i) never.push_back({0, i * 70'000, 100});
  r->prefetch(never);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(is_right(*r, random_ranges(2, 500)));
  const std::vector<file_range> wanted{{0, 3'900'000, 5000}};
  const std::uint64_t before = r->report().bytes_read;
  r->prefetch(wanted);
  r->prefetch({});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(is_right(*r, wanted));
  EXPECT_GT(r->report().bytes_read, before);
}

TEST_F(UringReader, AnotherThreadMayGoOn) {
  const auto r = reader();
  const auto ranges = random_ranges(60, 8192);
  r->prefetch(ranges);
  EXPECT_TRUE(is_right(*r, std::vector(ranges.begin(), ranges.begin() + 20)));
  std::thread([&] {
    EXPECT_TRUE(is_right(*r, std::vector(ranges.begin() + 20, ranges.end())));
    r->prefetch(ranges);
  }).join();
  EXPECT_TRUE(is_right(*r, ranges));
}

TEST_F(UringReader, MayEndWhileReadsAreInFlight) {
  for (int i = 0; i < 20; ++i) {
    const auto r = reader();
    r->prefetch(random_ranges(100, 8192));
    if (i % 2 == 0) std::thread([&] { r->prefetch(random_ranges(100, 8192)); }).join();
  }
}

// A gather must give the right bytes for any results of reads. The test simulates results that a
// disk, a signal or a network file system can cause. It alters results at random, and poisons the
// bytes that an altered result does not cover.
TEST_F(UringReader, GivesTheBytesWhateverBecomesOfReads) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  random_.seed(test::seed(11));
  std::map<std::string, int> met;
  uring_options ring{.depth = 16, .slots = 64};
  ring.alter_result = [&](std::int64_t result, std::span<std::byte> memory) -> std::int64_t {
    const auto failed = [&](const char* name, int code) -> std::int64_t {
      ++met[name];
      std::ranges::fill(memory, std::byte{0xEE});
      return -code;
    };
    switch (random_() % 6) {
      case 0: {  // a short read that ends at a block boundary
        if (result < 1024) return result;
        const auto left = static_cast<std::int64_t>(random_() % 8 + 1) * 512;
        if (left >= result) return result;
        ++met["short"];
        std::ranges::fill(memory.subspan(static_cast<std::size_t>(left)), std::byte{0xEE});
        return left;
      }
      case 1:
        return failed("EAGAIN", EAGAIN);
      case 2:
        return failed("EINTR", EINTR);
      case 3:
        return random_() % 8 == 0 ? failed("EIO", EIO) : result;
      default:
        return result;
    }
  };
  const auto r = reader(ring);
  for (int round = 0; round < 60; ++round) {
    auto ranges = random_ranges(random_() % 30, 1 + random_() % 40'000);
    if (round % 3 != 0) r->prefetch(ranges);
    ASSERT_TRUE(is_right(*r, ranges)) << "round " << round;
  }
  for (const char* name : {"short", "EAGAIN", "EINTR", "EIO"}) EXPECT_GT(met[name], 0) << name;
  EXPECT_GT(r->report().retries, 0);
  EXPECT_EQ(r->report().granted, "io_uring");
}

// The kernel opens the file for direct reads but then refuses to read it. pread is then used.
TEST_F(UringReader, AFileThatRefusesDirectReadsIsReadByPread) {
  if (!is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  uring_options ring;
  int refused = 0;
  ring.alter_result = [&](std::int64_t, std::span<std::byte> memory) -> std::int64_t {
    ++refused;
    std::ranges::fill(memory, std::byte{0xEE});
    return -EINVAL;
  };
  const auto r = reader(ring);
  EXPECT_TRUE(is_right(*r, random_ranges(5, 8192)));
  const int first = refused;
  EXPECT_TRUE(is_right(*r, random_ranges(50, 8192)));
  EXPECT_EQ(refused, first) << "it was tried again";
  const reader_report report = r->report();
  EXPECT_EQ(report.granted, "pread");
  const grant* const direct = find(report, "O_DIRECT");
  ASSERT_NE(direct, nullptr);
  EXPECT_THAT(direct->why, HasSubstr("tokens.bin: read: Invalid argument: read by pread"));
}

// A permanent error in the middle of a file ends the gather. DeepSpeed's loader was found not to do
// this.
TEST_F(UringReader, AnErrorThatStaysEndsTheGatherAndNoMore) {
  const auto r = reader();
  std::filesystem::resize_file(files_[0].path, 2'000'000);
  files_.push_back(files_[0]);
  EXPECT_THROW((void)is_right(*r, {{0, 0, 100}, {0, 3'000'000, 8192}, {0, 100, 100}}), io_error);
}

// Whichever allocation fails, a call either does its work or changes nothing. The reader can still
// be used afterwards, even on another thread. There, the reader makes another ring.
TEST_F(UringReader, AFailedAllocationHarmsNoLaterGather) {
  const auto ranges = random_ranges(40, 8192);
  const auto others = random_ranges(20, 20'000);
  const int status = test::in_child([&] {
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      (void)::alarm(60);  // a ring without operations would wait forever
      const auto r = reader({.depth = 8, .slots = 32, .slot_bytes = 4096, .most_files = 2});
      test::arm({.k = k});
      r->prefetch(ranges);
      const std::int64_t first_ring = test::disarm();
      if (!is_right(*r, ranges)) return 1;
      std::int64_t next_ring = 0;
      bool right = false;
      std::thread([&] {
        test::arm({.k = k});
        r->prefetch(others);
        next_ring = test::disarm();
        right = is_right(*r, others);
      }).join();
      if (!right || !is_right(*r, ranges) || r->report().granted.empty()) return 2;
      failed = std::max(first_ring, next_ring) >= k;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

// A gather without memory throws, and the next gather fills the same buffers.
TEST_F(UringReader, AGatherWithoutMemoryMayBeRepeated) {
  const auto ranges = random_ranges(40, 8192);
  const int status = test::in_child([&] {
    std::vector<std::byte> memory(ranges.size() * 8192);
    std::vector<read_request> requests;
    requests.reserve(ranges.size());
    for (const file_range& r : ranges) {
      requests.push_back({r, memory.data() + requests.size() * 8192});
    }
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      (void)::alarm(60);
      const auto r = reader({.depth = 8, .slots = 32, .slot_bytes = 4096, .most_files = 2});
      if (k % 2 == 0) r->prefetch(ranges);
      test::arm({.k = k});
      try {
        r->gather(requests);
      } catch (const std::bad_alloc&) {
      }
      failed = test::disarm() >= k;
      if (!is_right(*r, ranges)) return 1;
    }
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(UringReader, OptionsOutOfRangeAreRefused) {
  const auto message = [&](const uring_options& ring) -> std::string {
    try {
      (void)reader(ring);
    } catch (const config_error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message({.depth = 7}), "io_uring: depth is 7, expected 8 to 4096");
  EXPECT_EQ(message({.slots = 31}), "io_uring: slots is 31, expected 32 to 65536");
  EXPECT_EQ(message({.slot_bytes = 5000}),
            "io_uring: slot_bytes is 5000, expected a multiple of 4096, up to 16777216");
  EXPECT_EQ(message({.most_files = 0}), "io_uring: most_files is 0, expected 1 to 32768");
}

// Files on memory file systems can be read too. O_DIRECT on tmpfs accepts any read on new kernels
// and is refused by old ones.
TEST_F(UringReader, ReadsFromMemoryFileSystemsToo) {
  if (test::quick_folder() != "/dev/shm") GTEST_SKIP() << "needs /dev/shm";
  const test::temp_folder memory("/dev/shm");
  std::filesystem::copy_file(files_[0].path, memory / "tokens.bin");
  files_[0].path = memory / "tokens.bin";
  const auto r = reader();
  const auto ranges = random_ranges(100, 9000);
  r->prefetch(ranges);
  EXPECT_TRUE(is_right(*r, ranges));
  EXPECT_NE(r->report().granted, "");
}

#endif

}  // namespace
}  // namespace millrace::loader
