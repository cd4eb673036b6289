// SPDX-License-Identifier: Apache-2.0
#include "watch/smoothed_rate.hpp"

#include <gtest/gtest.h>

namespace millrace::preprocess {
namespace {

TEST(SmoothedRate, IsZeroBeforeAnything) {
  smoothed_rate rate;
  EXPECT_EQ(rate.per_second(), 0);
  rate.update(100, 0);
  EXPECT_EQ(rate.per_second(), 0);
}

TEST(SmoothedRate, IsTheRateFromTheFirstMomentOn) {
  smoothed_rate rate;
  for (int i = 1; i <= 100; ++i) {
    rate.update(7.0 * i, i);
    EXPECT_NEAR(rate.per_second(), 7, 1e-9) << i;
  }
}

// The rate forgets half in ten seconds, whatever the number of updates.
TEST(SmoothedRate, ForgetsHalfInTenSeconds) {
  for (const int steps : {1, 10, 1000}) {
    smoothed_rate rate;
    rate.update(1e6, 1000);  // 1000 per second, for so long that nothing earlier counts
    for (int i = 1; i <= steps; ++i) rate.update(1e6, 1000 + 10.0 * i / steps);
    EXPECT_NEAR(rate.per_second(), 500, 1e-6) << steps;
  }
}

TEST(SmoothedRate, TakesTheSameMomentTwice) {
  smoothed_rate rate;
  rate.update(10, 1);
  rate.update(30, 1);
  EXPECT_DOUBLE_EQ(rate.per_second(), 10);
}

}  // namespace
}  // namespace millrace::preprocess
