// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/mersenne_twister.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

constexpr std::uint32_t seeds[] = {0, 1, 1234, 0xFFFFFFFF};

// The draws equal those of the standard library's generator. The test draws more numbers than
// several states hold, so it also tests the refill of the state.
TEST(MersenneTwister, DrawsWhatTheStandardOneDraws) {
  for (const std::uint32_t seed : seeds) {
    mersenne_twister ours(seed);
    std::mt19937 standard(seed);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(ours(), standard()) << seed << ", draw " << i;
  }
}

TEST(MersenneTwister, JoinsTwoDrawsWithTheFirstAbove) {
  mersenne_twister ours(1234);
  EXPECT_EQ(ours.next64(), 822569775ULL << 32 | 2137449171ULL);
  EXPECT_EQ(ours(), 2671936806U);
}

// Draws are the same whether they are taken one by one or in spans. Some spans end where the state
// is used up.
TEST(MersenneTwister, OffersItsDrawsInRuns) {
  for (const std::size_t most : {1UL, 7UL, 623UL, 624UL, 1000UL}) {
    mersenne_twister in_runs(99);
    mersenne_twister one_by_one(99);
    for (int run = 0; run < 50; ++run) {
      const auto ready = in_runs.ready();
      ASSERT_FALSE(ready.empty());
      const auto taken = ready.first(std::min(most, ready.size()));
      for (const std::uint32_t draw : taken) ASSERT_EQ(draw, one_by_one()) << most;
      in_runs.take(taken.size());
      ASSERT_EQ(in_runs(), one_by_one()) << most;
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
