// SPDX-License-Identifier: Apache-2.0
//
// Tests the quality of the instant order's shuffle. Also tests that the shuffle is a permutation
// for every size.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/window_order.hpp>

#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

feistel order_of(std::int64_t n, std::uint64_t seed, std::uint64_t epoch) {
  return {n, keys_of(absorb(order_hash(shuffle_of::windows, seed, name_hash("web")), epoch))};
}

TEST(InstantShuffle, IsABijectionWithItsInverseForEverySizeTo2000) {
  const std::uint64_t seed = test::seed(1);
  for (std::int64_t n = 1; n <= 2000; ++n) {
    const feistel order = order_of(n, seed, 0);
    std::vector<bool> met(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t to = order(i);
      ASSERT_TRUE(0 <= to && to < n && !met[static_cast<std::size_t>(to)]) << n << ' ' << i;
      met[static_cast<std::size_t>(to)] = true;
      ASSERT_EQ(order.inverse(to), i) << n;
    }
  }
}

TEST(InstantShuffle, HasAnInverseForSizesTo2To40) {
  const std::uint64_t seed = test::seed(2);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto n =
        static_cast<std::int64_t>((random() >> (24 + random() % 40)) % (std::uint64_t{1} << 40)) +
        1;
    const feistel order = order_of(n, seed, random());
    for (int i = 0; i < 50; ++i) {
      const auto at = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      const std::int64_t to = order(at);
      ASSERT_TRUE(0 <= to && to < n) << n;
      ASSERT_EQ(order.inverse(to), at) << n;
      ASSERT_EQ(order(order.inverse(at)), at) << n;
    }
  }
}

/// Returns (x - df) / sqrt(2 df) for the chi-squared statistic x with df degrees of freedom. For a
/// random order, this is approximately standard normal.
double deviation(const std::vector<std::int64_t>& counts, double expected) {
  double x2 = 0;
  for (const std::int64_t count : counts) {
    x2 += std::pow(static_cast<double>(count) - expected, 2) / expected;
  }
  const auto df = static_cast<double>(counts.size() - 1);
  return (x2 - df) / std::sqrt(2 * df);
}

// Over many epochs, each window is at each place equally often, and each window follows every other
// window equally often. A fair shuffle has both properties.
TEST(InstantShuffle, PutsEachWindowAtEachTimeEquallyOften) {
  const std::uint64_t seed = test::seed(3);
  for (const std::int64_t n : {3, 5, 8, 16, 29, 64}) {
    const auto size = static_cast<std::size_t>(n);
    const int epochs = static_cast<int>(40 * n * n);
    std::vector<std::int64_t> at_time(size * size);
    std::vector<std::int64_t> followers(size * size);
    for (int e = 0; e < epochs; ++e) {
      const feistel order = order_of(n, seed, static_cast<std::uint64_t>(e));
      std::size_t before = 0;
      for (std::size_t i = 0; i < size; ++i) {
        const auto to = static_cast<std::size_t>(order(static_cast<std::int64_t>(i)));
        ++at_time[i * size + to];
        if (i != 0) ++followers[before * size + to];
        before = to;
      }
    }
    // The row and column sums of `at_time` are fixed, so there are 2n - 1 fewer degrees of freedom.
    // The bound allows for this. It is far below the values of a bad shuffle (tens to thousands).
    EXPECT_LT(std::abs(deviation(at_time, epochs / static_cast<double>(n))), 6) << n;
    std::vector<std::int64_t> pairs;
    for (std::size_t i = 0; i < followers.size(); ++i) {
      if (i / size != i % size) pairs.push_back(followers[i]);
    }
    EXPECT_LT(std::abs(deviation(pairs, epochs / static_cast<double>(n))), 6) << n;
  }
}

// The place of a window in the order must not depend on the place of its neighbor in the file.
TEST(InstantShuffle, LeavesNoCorrelationOfNeighbours) {
  const std::uint64_t seed = test::seed(4);
  for (const std::int64_t n : {1000, 4096, 65535, 65537, 300000}) {
    const feistel order = order_of(n, seed, 0);
    for (const std::int64_t lag : {1, 2, 256, 512}) {
      const double mean = static_cast<double>(n - 1) / 2;
      double sum = 0;
      for (std::int64_t i = 0; i + lag < n; ++i) {
        sum +=
            (static_cast<double>(order(i)) - mean) * (static_cast<double>(order(i + lag)) - mean);
      }
      const double variance = (static_cast<double>(n) * static_cast<double>(n) - 1) / 12;
      const double correlation = sum / variance / static_cast<double>(n - lag);
      EXPECT_LT(std::abs(correlation) * std::sqrt(static_cast<double>(n)), 5) << n << ' ' << lag;
    }
  }
}

/// Returns how many pairs of windows are adjacent in the file and also in the same global batch.
template <class Turn>
std::int64_t shared_batches(std::int64_t n, std::int64_t batch, Turn&& turn) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i + 1 < n; ++i) count += turn(i) / batch == turn(i + 1) / batch;
  return count;
}

TEST(InstantShuffle, PutsNeighboursIntoOneBatchAsRarelyAsAFairShuffle) {
  const std::uint64_t seed = test::seed(5);
  constexpr std::int64_t n = 200'000;
  constexpr std::int64_t batch = 512;
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> fair(n);
  std::iota(fair.begin(), fair.end(), 0);
  std::int64_t ours = 0;
  std::int64_t theirs = 0;
  for (std::uint64_t e = 0; e < 5; ++e) {
    const feistel order = order_of(n, seed, e);
    ours += shared_batches(n, batch, [&](std::int64_t i) { return order.inverse(i); });
    std::shuffle(fair.begin(), fair.end(), random);
    theirs +=
        shared_batches(n, batch, [&](std::int64_t i) { return fair[static_cast<std::size_t>(i)]; });
  }
  const double expected = 5. * (n - 1) * (batch - 1) / (n - 1);  // 2555
  EXPECT_LT(static_cast<double>(ours), 1.15 * expected);
  EXPECT_GT(static_cast<double>(ours), 0.85 * expected);
  EXPECT_LT(ours, 2 * theirs);
  EXPECT_GT(2 * ours, theirs);
}

// The orders of two epochs, two seeds or two sources must be unrelated.
TEST(InstantShuffle, MakesUnrelatedOrdersForEachEpochAndSource) {
  constexpr std::int64_t n = 50'000;
  const std::uint64_t seed = test::seed(6);
  const window_order web("web", n * 8 + 1, 8, seed);
  const window_order code("code", n * 8 + 1, 8, seed);
  const window_order other("web", n * 8 + 1, 8, seed + 1);
  const auto correlation = [&](const epoch_windows& a, const epoch_windows& b) {
    const double mean = static_cast<double>(n - 1) / 2;
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += (static_cast<double>(a.at(i).window) - mean) *
             (static_cast<double>(b.at(i).window) - mean);
    }
    return std::abs(sum / (static_cast<double>(n) * n * n / 12)) * std::sqrt(n);
  };
  EXPECT_LT(correlation(web.epoch(0), web.epoch(1)), 5);
  EXPECT_LT(correlation(web.epoch(1), web.epoch(2)), 5);
  EXPECT_LT(correlation(web.epoch(0), code.epoch(0)), 5);
  EXPECT_LT(correlation(web.epoch(0), other.epoch(0)), 5);
}

}  // namespace
}  // namespace millrace::dataset
