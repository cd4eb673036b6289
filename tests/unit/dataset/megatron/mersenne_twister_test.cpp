// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/mersenne_twister.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/formats/detail/sha256.hpp>

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

// Hashes of 2,000 draws of numpy 2.4.6:
//
//   draws = numpy.random.RandomState(key).randint(0, 2**32, 2000, dtype=numpy.uint32)
//   hashlib.sha256(draws.tobytes()).hexdigest()
TEST(MersenneTwister, TakesAKeyAsNumpyDoes) {
  std::vector<std::uint32_t> longest(624);
  std::iota(longest.begin(), longest.end(), 0);
  const auto draws = [](const std::vector<std::uint32_t>& key) {
    mersenne_twister ours(std::span<const std::uint32_t>{key});
    std::vector<std::uint32_t> drawn(2000);
    std::generate(drawn.begin(), drawn.end(), [&] { return ours(); });
    return formats::sha256_hex(std::as_bytes(std::span(drawn)));
  };
  EXPECT_EQ(draws({0}), "a4aefe4e07260ce5922e09534feddd46c506642c3271e876bd269d0d74bc0034");
  EXPECT_EQ(draws({1, 2}), "ab13a46df96add419d0c58087c5d93f7ded429275fdc40fa425b31f02ba95496");
  EXPECT_EQ(draws({0, 0}), "551abbebc04a1f02976608794d93820dfdec616414dbb78ade4e28d926b3f678");
  EXPECT_EQ(draws({0x12345678, 0x9abcdef0}),
            "612ef35de04bf6388b7c8d87eebc690397613da26865dde723d99504333fe3fa");
  EXPECT_EQ(draws(longest), "9075afa3484e484a79d799a5ed9be39530ce70e069923ba6684e0be2ca59ec41");
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
