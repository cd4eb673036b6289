// SPDX-License-Identifier: Apache-2.0
#include <millrace/io/detail/residency.hpp>

#include <fcntl.h>
#include <sys/mman.h>

#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/io/detail/unique_fd.hpp>

#include "support/paths.hpp"

namespace millrace::io {
namespace {

using ask = std::optional<residency> (*)(int, std::uint64_t, std::uint64_t) noexcept;

/// A file of 64 pages on a disk. None of its pages is in memory.
class Residency : public testing::TestWithParam<ask> {
 protected:
  static constexpr std::uint64_t page = 4096;

  void SetUp() override {
    test::write_bytes(folder_ / "file", std::vector<std::byte>(64 * page, std::byte{1}));
    fd_ = io::open_read_only(folder_ / "file");
    if (!GetParam()(fd_.get(), 0, page)) GTEST_SKIP() << "this kernel does not tell";
    ASSERT_EQ(::fsync(fd_.get()), 0);
    ASSERT_EQ(::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);  // no read-ahead
    if (share(0, 64 * page) > 0)
      GTEST_SKIP() << "this file system keeps what it was told to forget";
  }
  double share(std::uint64_t offset, std::uint64_t bytes) const {
    const auto answer = GetParam()(fd_.get(), offset, bytes);
    return answer ? answer->share : -1;
  }

  test::temp_folder folder_;
  io::unique_fd fd_;
};

INSTANTIATE_TEST_SUITE_P(All, Residency, testing::Values(ask_cachestat, ask_mincore, ask_residency),
                         [](const auto& test) {
                           return test.param == ask_cachestat ? "cachestat"
                                  : test.param == ask_mincore ? "mincore"
                                                              : "either";
                         });

TEST_P(Residency, CountsThePagesThatWereRead) {
  std::byte one{};
  for (const std::uint64_t at : {0 * page, 1 * page, 10 * page, 63 * page}) {
    ASSERT_EQ(::pread(fd_.get(), &one, 1, static_cast<::off_t>(at)), 1);
  }
  EXPECT_DOUBLE_EQ(share(0, 64 * page), 4.0 / 64);
  EXPECT_DOUBLE_EQ(share(0, 2 * page), 1);
  EXPECT_DOUBLE_EQ(share(2 * page, 4 * page), 0);
  EXPECT_DOUBLE_EQ(share(page + 100, 10), 1);         // pages count as a whole
  EXPECT_DOUBLE_EQ(share(page + 4000, 200), 0.5);     // across a page border
  EXPECT_DOUBLE_EQ(share(63 * page, 2 * page), 0.5);  // pages past the end count as absent
  EXPECT_DOUBLE_EQ(share(5 * page, 0), 1);
}

TEST_P(Residency, SaysWhoSaidSo) {
  const auto answer = GetParam()(fd_.get(), 0, page);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->by == std::string("cachestat") || answer->by == std::string("mincore"));
}

TEST(ResidentShare, IsNothingOfWhatIsNoFile) {
  EXPECT_FALSE(resident_share(-1, 0, 4096).has_value());
}

}  // namespace
}  // namespace millrace::io
