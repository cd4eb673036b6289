// SPDX-License-Identifier: Apache-2.0
#include "output/space_guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace millrace::preprocess {
namespace {

using testing::DoubleNear;
using testing::Optional;

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

std::vector<input_file> files(std::initializer_list<compression> compressions) {
  std::vector<input_file> all;
  for (const compression compressed_with : compressions) {
    all.push_back({.path = "x",
                   .compressed_with = compressed_with,
                   .size_bytes = 100 * mib,
                   .regular = true});
  }
  return all;
}

TEST(GrowthForecast, SaysMoreAsTheSampleGrows) {
  const auto inputs = files({compression::none});
  growth_forecast forecast(inputs, 100 * mib);
  EXPECT_EQ(forecast.next(mib - 1, mib - 1), std::nullopt);
  EXPECT_THAT(forecast.next(mib, mib), Optional(DoubleNear(0.25 * 99, 1e-9)));
  EXPECT_EQ(forecast.next(2 * mib, 2 * mib), std::nullopt) << "no larger sample than before";
  EXPECT_THAT(forecast.next(10 * mib, 10 * mib), Optional(DoubleNear(0.5 * 9, 1e-9)));
  EXPECT_THAT(forecast.next(80 * mib, 80 * mib), Optional(DoubleNear(0.8 * 0.25, 1e-9)));
  EXPECT_EQ(forecast.next(90 * mib, 90 * mib), std::nullopt);
}

// A line can be longer than the input that counts as read. This must not mislead the forecast.
// Here, a line of 90 MiB was processed to its end, but only 1 MiB of input counts as read.
TEST(GrowthForecast, IsNotMisledByALineThatIsLongerThanWhatIsRead) {
  const auto plain = files({compression::none});
  EXPECT_THAT(growth_forecast(plain, 100 * mib).next(mib, 90 * mib, true),
              Optional(DoubleNear(0.8 / 9, 1e-9)));
  const auto compressed = files({compression::zstd});
  EXPECT_THAT(growth_forecast(compressed, 100 * mib).next(mib, 90 * mib, true),
              Optional(DoubleNear(0.8 * 99 / 90, 1e-9)));
}

// The first forecast uses the whole sample. A resumed run has a large sample from the beginning.
TEST(GrowthForecast, BeginsWithTheLargestSampleThereIs) {
  const auto inputs = files({compression::none});
  growth_forecast forecast(inputs, 100 * mib);
  EXPECT_THAT(forecast.next(80 * mib, 80 * mib), Optional(DoubleNear(0.8 * 0.25, 1e-9)));
}

TEST(GrowthForecast, KnowsNothingOfPipesNorBehindTheEnd) {
  const auto inputs = files({compression::none});
  EXPECT_EQ(growth_forecast(inputs, 0).next(10 * mib, 10 * mib), std::nullopt);
  EXPECT_EQ(growth_forecast(inputs, 10 * mib).next(10 * mib, 10 * mib), std::nullopt);
}

// Compressed files give much output per byte on disk. If the forecast applied this ratio to the
// plain files that follow, the forecast would be four times too large. A disk with enough space
// would be refused.
TEST(GrowthForecast, TakesPlainFilesBehindAnArchiveForWhatTheyAre) {
  const auto compressed = files({compression::zstd, compression::zstd});
  EXPECT_THAT(growth_forecast(compressed, 200 * mib).next(20 * mib, 80 * mib),
              Optional(DoubleNear(0.8 * 9, 1e-9)));
  const auto mixed = files({compression::zstd, compression::none});
  EXPECT_THAT(growth_forecast(mixed, 200 * mib).next(20 * mib, 80 * mib),
              Optional(DoubleNear(0.8 * 180 / 80, 1e-9)));
}

}  // namespace
}  // namespace millrace::preprocess
