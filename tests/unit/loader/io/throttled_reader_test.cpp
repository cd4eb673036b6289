// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/throttled_reader.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/detail/io/pread_reader.hpp>

#include "support/faulty_reader.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ThrottledReader : public testing::Test {
 protected:
  ThrottledReader() { test::write_bytes(folder_ / "a", std::vector<std::byte>(100'000)); }

  std::unique_ptr<range_reader> plain() const {
    return std::make_unique<pread_reader>(std::vector<data_file>{{folder_ / "a", 100'000}});
  }

  /// Returns how long one gather of `count` ranges takes, in milliseconds.
  static double gather(range_reader& reader, std::size_t count) {
    std::vector<std::byte> memory(1000 * count);
    std::vector<read_request> requests;
    for (std::size_t i = 0; i < count; ++i) {
      requests.push_back({{0, i * 1000, 1000}, memory.data() + i * 1000});
    }
    const auto begin = steady_clock::now();
    reader.gather(requests);
    return std::chrono::duration<double, std::milli>(steady_clock::now() - begin).count();
  }

  test::temp_folder folder_;
};

// All requests of one gather must wait for the latency only once. The test checks only lower
// bounds, because a busy machine may add any delay.
TEST_F(ThrottledReader, RequestsAtOnceWaitOnceForTheLatency) {
  throttled_reader reader(plain(), {.latency = milliseconds(5)});
  EXPECT_GE(gather(reader, 1), 5.0);
  double least = 1e9;
  for (int i = 0; i < 10; ++i) least = std::min(least, gather(reader, 20));
  EXPECT_GE(least, 5.0);
  EXPECT_LT(least, 20 * 5.0);
}

TEST_F(ThrottledReader, BytesGoOverOneLine) {
  throttled_reader reader(plain(), {.bytes_per_second = 1e6});
  EXPECT_GE(gather(reader, 20), 20.0);
}

TEST_F(ThrottledReader, WhatWasAnnouncedIsUnderWay) {
  const std::vector<file_range> ranges{{0, 0, 1000}, {0, 1000, 1000}};
  for (const bool sees : {true, false}) {
    throttled_reader reader(plain(), {.latency = milliseconds(200), .sees_prefetch = sees});
    reader.prefetch(ranges);
    std::this_thread::sleep_for(milliseconds(200));
    const double took = gather(reader, 2);
    EXPECT_EQ(took < 200, sees) << took;
    EXPECT_GE(gather(reader, 2), 200.0);  // only one read was announced
  }
}

TEST_F(ThrottledReader, ErrorsComeAtOnceAndItSaysWhatItIs) {
  throttled_reader reader(std::make_unique<test::faulty_reader>(plain(),
                                                                [](std::int64_t n) {
                                                                  if (n == 0)
                                                                    throw io_error("a", "read", 5);
                                                                }),
                          {.latency = milliseconds(1), .jitter = milliseconds(1)});
  EXPECT_THROW(gather(reader, 1), io_error);
  EXPECT_GE(gather(reader, 1), 1.0);
  const reader_report report = reader.report();
  EXPECT_EQ(report.granted, "pread");
  EXPECT_EQ(report.grants.back().asked,
            "simulated storage of 1000 us latency, up to 1000 us jitter (seed 1)");
  EXPECT_THROW(throttled_reader(plain(), {.latency = milliseconds(-1)}), config_error);
  EXPECT_THROW(throttled_reader(plain(), {.bytes_per_second = -1}), config_error);
}

}  // namespace
}  // namespace millrace::loader
