// SPDX-License-Identifier: Apache-2.0
//
// Readers must leave descriptors free for the rest of the process: for indices, checkpoints and
// sockets.
#include <fcntl.h>
#include <sys/resource.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/loader/detail/io/make_reader.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

constexpr std::uint64_t bytes_per_file = 20'000;
constexpr std::uint64_t window = 5000;

class FewDescriptors : public testing::TestWithParam<const char*> {
 protected:
  FewDescriptors() {
    for (int i = 0; i < 120; ++i) {
      files_.push_back({folder_ / (std::to_string(i) + ".bin"), bytes_per_file});
      test::write_bytes(files_.back().path,
                        std::vector<std::byte>(bytes_per_file, static_cast<std::byte>(i)));
    }
  }

  std::unique_ptr<range_reader> reader() const {
    io_options options;
    options.back_end = GetParam();
    return make_reader(files_, options);
  }

  /// Announces and reads random windows of several files. Returns whether all bytes are right.
  bool reads(range_reader& from) {
    std::vector<file_range> ranges(40);
    for (file_range& r : ranges) {
      r = {static_cast<std::int64_t>(random_() % files_.size()),
           random_() % (bytes_per_file - window), window};
    }
    from.prefetch(ranges);
    std::vector<std::byte> got(window);
    for (const file_range& r : ranges) {
      const read_request request{r, got.data()};
      from.gather({&request, 1});
      if (got != std::vector<std::byte>(window, static_cast<std::byte>(r.file))) return false;
    }
    return true;
  }

  std::mt19937_64 random_{1};
  test::temp_folder folder_;
  std::vector<data_file> files_;
};

TEST_P(FewDescriptors, SeveralReadersOfManyFilesLeaveAThirdOfThem) {
  const int status = test::in_child([&] {
    const ::rlimit few{64, 64};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) return test::cannot_try;
    // Four readers, one for each filling thread.
    std::vector<std::unique_ptr<range_reader>> readers;
    readers.reserve(4);
    for (int i = 0; i < 4; ++i) readers.push_back(reader());
    for (int round = 0; round < 5; ++round) {
      for (const auto& each : readers) {
        if (!reads(*each)) return 1;
      }
    }
    std::vector<io::unique_fd> others;
    for (int i = 0; i < 64 / 3; ++i) {
      others.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!others.back()) return 2;
    }
    return reads(*readers.front()) ? 0 : 3;
  });
  if (status == test::cannot_try) GTEST_SKIP() << "this process may not lower its limits";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Readers, FewDescriptors, testing::Values("mmap", "pread", "io_uring"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace millrace::loader
