// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

TEST(DurationBuckets, AreInOrderWithoutGaps) {
  std::int64_t next = 0;
  for (std::size_t bucket = 0; bucket < duration_buckets::count; ++bucket) {
    const std::int64_t last = duration_buckets::last_of(bucket);
    ASSERT_GE(last, next) << bucket;
    EXPECT_EQ(duration_buckets::of(next), bucket);
    EXPECT_EQ(duration_buckets::of(last), bucket);
    // The width of a bucket is at most a sixteenth of the values in it.
    EXPECT_LE((last - next + 1) * 16, std::max<std::int64_t>(next, 16)) << bucket;
    next = last + 1;
  }
  EXPECT_EQ(next, std::int64_t{1} << duration_buckets::most_bits);
}

TEST(DurationBuckets, TakeWhatIsTooLong) {
  EXPECT_EQ(duration_buckets::of(std::int64_t{1} << 42), duration_buckets::count - 1);
  EXPECT_EQ(duration_buckets::of(INT64_MAX), duration_buckets::count - 1);
}

TEST(DurationHistogram, IsEmptyAtFirst) {
  const duration_counts counts = duration_histogram().counts();
  EXPECT_EQ(counts.count, 0);
  EXPECT_EQ(counts.quantile_ns(0.5), 0);
  EXPECT_EQ(counts.quantile_ns(1), 0);
  EXPECT_EQ(counts.max_ns, 0);
}

TEST(DurationHistogram, KnowsTheLargestAndTheSum) {
  duration_histogram histogram;
  for (const std::int64_t ns : {3'000, -5, 17, 123'456'789}) histogram.add(ns);
  const duration_counts counts = histogram.counts();
  EXPECT_EQ(counts.count, 4);
  EXPECT_EQ(counts.total_ns, 123'459'806);  // a negative duration counts as zero
  EXPECT_EQ(counts.max_ns, 123'456'789);
  EXPECT_EQ(counts.quantile_ns(1), 123'456'789);
  EXPECT_EQ(counts.quantile_ns(0), 0);
}

TEST(DurationHistogram, NamesTheLargestBeyondItsRange) {
  duration_histogram histogram;
  histogram.add(std::int64_t{1} << 50);
  EXPECT_EQ(histogram.counts().quantile_ns(0.5), std::int64_t{1} << 50);
}

// Quantiles may be wrong by a sixteenth at most. The test compares them with the quantiles of the
// sorted durations.
TEST(DurationHistogram, HasQuantilesToASixteenth) {
  std::mt19937_64 random(test::seed(1));
  for (int round = 0; round < 50; ++round) {
    duration_histogram histogram;
    std::vector<std::int64_t> all(1 + random() % 3000);
    std::lognormal_distribution<> draw(static_cast<double>(random() % 16), 2);
    for (std::int64_t& ns : all) {
      ns = std::llround(draw(random));
      histogram.add(ns);
    }
    std::ranges::sort(all);
    const duration_counts counts = histogram.counts();
    for (const double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank =
          static_cast<std::size_t>(std::max(1.0, std::ceil(q * static_cast<double>(all.size()))));
      const std::int64_t exact = all[rank - 1];
      EXPECT_GE(counts.quantile_ns(q), exact) << q;
      EXPECT_LE(counts.quantile_ns(q), exact + exact / 16) << q;
    }
    for (int log2 = 4; log2 <= 42; ++log2) {
      const auto below = std::ranges::count_if(
          all, [&](std::int64_t ns) { return ns < (std::int64_t{1} << log2) || log2 == 42; });
      EXPECT_EQ(counts.below_power(log2), below) << log2;
    }
  }
}

}  // namespace
}  // namespace millrace::loader
