// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/detail/page_cache.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <millrace/io/detail/residency.hpp>

#include "support/paths.hpp"

namespace millrace::io {
namespace {

using detail::dont_cache;
using detail::refused_devices;
using detail::with_page_cache;
using testing::ElementsAre;

unique_fd fresh_file(const std::filesystem::path& path) {
  return unique_fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
}

std::uint64_t device_of(const unique_fd& fd) {
  struct ::stat status {};
  EXPECT_EQ(::fstat(fd.get(), &status), 0);
  return status.st_dev;
}

TEST(RefusedDevices, AreThoseThatWereAdded) {
  refused_devices refused;
  EXPECT_FALSE(refused.any());
  EXPECT_FALSE(refused.has(0));
  refused.add(0);
  refused.add(7);
  refused.add(7);
  EXPECT_TRUE(refused.any());
  EXPECT_TRUE(refused.has(0));
  EXPECT_TRUE(refused.has(7));
  EXPECT_FALSE(refused.has(8));
}

TEST(RefusedDevices, AreNoMoreThanFit) {
  refused_devices refused;
  for (std::uint64_t i = 0; i < refused_devices::most + 5; ++i) refused.add(100 + i);
  for (std::uint64_t i = 0; i < refused_devices::most; ++i) EXPECT_TRUE(refused.has(100 + i));
  EXPECT_FALSE(refused.has(100 + refused_devices::most));
}

TEST(RefusedDevices, MayBeAddedByAnyThread) {
  refused_devices refused;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&refused, i] {
      for (std::uint64_t each = 0; each < 4; ++each) refused.add(10 * (i % 4) + each);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < 16; ++i) EXPECT_TRUE(refused.has(10 * (i / 4) + i % 4));
  EXPECT_FALSE(refused.has(4));
}

/// A file on a simulated file system, which refuses the flag RWF_DONTCACHE with the error `code`,
/// or accepts the flag if `code` is 0. Records the flags of each call.
struct toy_file {
  unique_fd fd;
  int code = 0;
  bool fails = false;  // the call also fails without the flag
  std::vector<int> flags = {};
  std::uint64_t dropped = 0;

  ::ssize_t transfer(page_cache pages, refused_devices& refused) {
    flags.clear();
    dropped = 0;
    const auto call = [this](int with) -> ::ssize_t {
      flags.push_back(with);
      const int error = with != 0 || fails ? code : 0;
      if (error == 0) return 5;
      errno = error;
      return -1;
    };
    return with_page_cache(
        fd, pages, call, [this](std::uint64_t n) { dropped += n; }, refused);
  }
};

TEST(PageCache, IsAskedForOncePerDeviceThatRefuses) {
  const test::temp_folder folder;
  toy_file refuses{.fd = open_read_only("/proc/self/stat"), .code = EOPNOTSUPP};
  toy_file takes{.fd = fresh_file(folder / "a")};
  ASSERT_NE(device_of(refuses.fd), device_of(takes.fd));
  refused_devices refused;
  EXPECT_EQ(refuses.transfer(page_cache::keep, refused), 5);
  EXPECT_THAT(refuses.flags, ElementsAre(0));
  EXPECT_EQ(refuses.dropped, 0U);
  EXPECT_EQ(refuses.transfer(page_cache::pass_through, refused), 5);
  EXPECT_THAT(refuses.flags, ElementsAre(dont_cache, 0));
  EXPECT_EQ(refuses.dropped, 5U);
  EXPECT_EQ(refuses.transfer(page_cache::pass_through, refused), 5);
  EXPECT_THAT(refuses.flags, ElementsAre(0));
  EXPECT_EQ(takes.transfer(page_cache::pass_through, refused), 5);
  EXPECT_THAT(takes.flags, ElementsAre(dont_cache)) << "another device's refusal is not its own";
  EXPECT_EQ(takes.dropped, 0U) << "the kernel does that";
}

TEST(PageCache, IsNotRefusedByWhatFailsAnyway) {
  for (const int code : {EINVAL, ENOSPC}) {
    refused_devices refused;
    toy_file file{.fd = open_read_only("/proc/self/stat"), .code = code, .fails = true};
    EXPECT_EQ(file.transfer(page_cache::pass_through, refused), -1);
    EXPECT_EQ(errno, code);
    EXPECT_FALSE(refused.any());
  }
}

// The kernel's answer is remembered for each file system. Suppose that the kernel refuses the flag
// for a file system in memory, but accepts it for a disk. Then later calls pass the flag only for
// the disk.
TEST(PageCache, IsWhatTheKernelSaysOfEachFileSystem) {
  const std::filesystem::path memory_folder = "/dev/shm";
  if (!std::filesystem::is_directory(memory_folder)) GTEST_SKIP() << "no " << memory_folder;
  const test::temp_folder disk;
  const test::temp_folder memory(memory_folder);
  const std::string text = "bytes";
  refused_devices refused;
  const auto write = [&](const unique_fd& fd) {
    const ::iovec part{const_cast<char*>(text.data()), text.size()};  // NOLINT: older than const
    std::vector<int> flags;
    const auto call = [&](int with) {
      flags.push_back(with);
      return ::pwritev2(fd.get(), &part, 1, 0, with);
    };
    const auto drop = [](std::uint64_t) {};
    EXPECT_EQ(with_page_cache(fd, page_cache::pass_through, call, drop, refused), 5);
    return flags;
  };
  const unique_fd in_memory = fresh_file(memory / "a");
  const unique_fd on_disk = fresh_file(disk / "a");
  const bool memory_refuses = write(in_memory).size() == 2;
  const bool disk_refuses = write(on_disk).size() == 2;
  if (!memory_refuses || disk_refuses) GTEST_SKIP() << "NOT tested: both answer alike here";
  EXPECT_THAT(write(in_memory), ElementsAre(0));
  EXPECT_THAT(write(on_disk), ElementsAre(dont_cache));
}

/// A file of 48 MiB on a disk. The kernel can report cached pages and drop them on request.
class DroppedPages : public testing::Test {
 protected:
  static constexpr std::uint64_t mib = 1 << 20;

  void SetUp() override {
    for (std::uint64_t at = 0; at < 48 * mib; at += mib) write(at);
    if (!told()) GTEST_SKIP() << "this kernel does not tell what is in memory";
    ASSERT_EQ(::fsync(fd_.get()), 0);
    drop_synced(fd_);
    if (*told() > 0.01) GTEST_SKIP() << "this file system keeps its pages";
  }

  std::optional<double> told() const { return resident_share(fd_.get(), 0, 48 * mib); }
  void write(std::uint64_t at) {
    ASSERT_EQ(::pwrite(fd_.get(), block_.data(), mib, static_cast<::off_t>(at)),
              static_cast<::ssize_t>(mib));
  }
  void read(std::uint64_t at) {
    ASSERT_EQ(::pread(fd_.get(), block_.data(), mib, static_cast<::off_t>(at)),
              static_cast<::ssize_t>(mib));
  }

  test::temp_folder folder_;
  unique_fd fd_ = fresh_file(folder_ / "file");
  std::vector<char> block_ = std::vector<char>(mib, 'x');
};

TEST_F(DroppedPages, OfWhatWasReadAreGone) {
  for (std::uint64_t at = 0; at < 48 * mib; at += mib) {
    read(at);
    drop_read(fd_, at, mib);
  }
  EXPECT_LT(*told(), 0.1);
}

// drop_written() drops pages that are already on the disk. The other pages can be dropped after the
// next fsync.
TEST_F(DroppedPages, OfWhatWasWrittenAreGoneOnceTheyAreOnTheDisk) {
  for (std::uint64_t at = 0; at < 32 * mib; at += mib) {
    write(at);
    ASSERT_EQ(::fsync(fd_.get()), 0);
    drop_written(fd_, at, mib);
  }
  EXPECT_LT(*told(), 0.1);
  for (std::uint64_t at = 0; at < 32 * mib; at += mib) write(at);
  EXPECT_GT(*told(), 0.3);
  ASSERT_EQ(::fsync(fd_.get()), 0);
  drop_synced(fd_);
  EXPECT_LT(*told(), 0.01);
}

TEST_F(DroppedPages, AreThoseOfFilesThatNobodyHasInMemory) {
  (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
  EXPECT_EQ(pages_for_reading(fd_, 48 * mib), page_cache::pass_through);
  for (std::uint64_t at = 24 * mib; at < 46 * mib; at += mib) read(at);
  EXPECT_NEAR(*estimated_share(fd_.get(), 48 * mib), 22.0 / 48, 0.02);
  EXPECT_EQ(pages_for_reading(fd_, 48 * mib), page_cache::pass_through);
  for (std::uint64_t at = 0; at < 4 * mib; at += mib) read(at);
  EXPECT_NEAR(*estimated_share(fd_.get(), 48 * mib), 26.0 / 48, 0.02);
  EXPECT_EQ(pages_for_reading(fd_, 48 * mib), page_cache::keep);
}

}  // namespace
}  // namespace millrace::io
