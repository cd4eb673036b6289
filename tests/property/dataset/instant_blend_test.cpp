// SPDX-License-Identifier: Apache-2.0
//
// Compares blends with a naive model. One of the blends has 200 sources, including a source with
// only a millionth of the total weight.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/dataset/detail/instant/schedule.hpp>

#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

/// Expects that every source is always within one sample of its share. Tests the first `positions`
/// positions, and keeps only one counter per source.
void expect_exact(const blend_slots& slots, std::int64_t positions) {
  const auto n = static_cast<std::size_t>(slots.source_count());
  const auto period = static_cast<double>(slots.period());
  std::vector<std::int64_t> had(n);
  std::vector<double> share(n);
  for (std::size_t i = 0; i < n; ++i) {
    share[i] = static_cast<double>(slots.slots(static_cast<std::int64_t>(i))) / period;
  }
  for (std::int64_t p = 0; p < positions; ++p) {
    const blend_place place = slots.at(p);
    ASSERT_TRUE(0 <= place.source && place.source < slots.source_count());
    auto& count = had[static_cast<std::size_t>(place.source)];
    ASSERT_EQ(place.k, count) << p;
    ASSERT_EQ(slots.position_of(place), p);
    ++count;
    // Checking all n sources at every step would be slow. It is enough to check the source that was
    // just served: only this source can be too far ahead, and a source is furthest behind just
    // before it is served.
    const double due = share[static_cast<std::size_t>(place.source)] * static_cast<double>(p + 1);
    ASSERT_LT(static_cast<double>(count) - due, 1) << p;
    const double due_before =
        share[static_cast<std::size_t>(place.source)] * static_cast<double>(p);
    ASSERT_LT(due_before - static_cast<double>(count - 1), 1) << p;
    if (p % 4099 == 0) {
      for (std::size_t i = 0; i < n; ++i) {
        ASSERT_LT(std::abs(share[i] * static_cast<double>(p + 1) - static_cast<double>(had[i])), 1);
        ASSERT_EQ(slots.taken(static_cast<std::int64_t>(i), p + 1), had[i]);
      }
    }
  }
}

TEST(InstantBlend, KeepsTwoHundredSourcesWithinOneSampleOfTheirShare) {
  std::mt19937_64 random(test::seed(1));
  std::vector<double> weights;
  weights.reserve(200);
  for (int i = 0; i < 199; ++i) weights.push_back(1 + static_cast<double>(random() % 1000));
  double sum = 0;
  for (const double w : weights) sum += w;
  weights.insert(weights.begin() + 77, sum * 1e-6);
  const blend_slots slots(weights);
  EXPECT_EQ(slots.slots(77), 4);  // of the 2^22 slots in the period
  expect_exact(slots, slots.period() + 100'000);
}

TEST(InstantBlend, IsWithinOneSampleForAnyWeights) {
  std::mt19937_64 random(test::seed(2));
  for (int round = 0; round < 60; ++round) {
    std::vector<double> weights(1 + random() % 40);
    for (double& w : weights) w = std::exp(-static_cast<double>(random() % 5000) / 1000);
    const blend_slots slots(weights);
    expect_exact(slots, std::min<std::int64_t>(slots.period() + 1000, 150'000));
  }
}

// A source gets its exact share of the slots in the period, rounded up or down.
TEST(InstantBlend, RoundsSharesByLittle) {
  std::mt19937_64 random(test::seed(3));
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(2 + random() % 50);
    for (double& w : weights) w = std::exp(-static_cast<double>(random() % 7000) / 1000);
    double sum = 0;
    for (const double w : weights) sum += w;
    const blend_slots slots(weights);
    std::int64_t total = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t count = slots.slots(static_cast<std::int64_t>(i));
      const double exact = weights[i] / sum * static_cast<double>(slots.period());
      EXPECT_LT(std::abs(static_cast<double>(count) - exact), 1);
      total += count;
    }
    EXPECT_EQ(total, slots.period());
  }
}

TEST(InstantBlend, SchedulesServeEverySampleOfASourceOnceAndInOrder) {
  std::mt19937_64 random(test::seed(4));
  for (int round = 0; round < 40; ++round) {
    const std::int64_t sources = 1 + static_cast<std::int64_t>(random() % 8);
    const std::int64_t batch = 1 + static_cast<std::int64_t>(random() % 300);
    std::vector<schedule_segment> segments;
    std::int64_t step = 0;
    for (std::uint64_t i = 0; i < 1 + random() % 5; ++i) {
      schedule_segment segment{step, {}};
      for (std::int64_t s = 0; s < sources; ++s) {
        if (random() % 3 != 0)
          segment.sources.push_back({s, 1. + static_cast<double>(random() % 9)});
      }
      if (segment.sources.empty()) segment.sources.push_back({0, 1});
      std::shuffle(segment.sources.begin(), segment.sources.end(), random);
      segments.push_back(segment);
      step += 1 + static_cast<std::int64_t>(random() % 60);
    }
    const schedule plan(segments, std::vector<source_limit>(static_cast<std::size_t>(sources)),
                        [&](std::int64_t s) { return s * batch; });
    std::vector<std::int64_t> had(static_cast<std::size_t>(sources));
    const std::int64_t end = batch * (step + 20);
    for (std::int64_t p = 0; p < end; ++p) {
      const blend_place place = plan.at(p);
      ASSERT_EQ(place.k, had[static_cast<std::size_t>(place.source)]++);
      ASSERT_EQ(plan.position_of(place), p);
    }
    for (std::int64_t s = 0; s < sources; ++s) {
      EXPECT_EQ(plan.taken(s, end), had[static_cast<std::size_t>(s)]);
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
