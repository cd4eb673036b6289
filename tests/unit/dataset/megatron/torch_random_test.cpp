// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/torch_random.hpp>

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> ours(std::uint64_t seed, std::size_t size, std::size_t wide_from) {
  std::vector<std::int64_t> order(size);
  torch_randperm(seed, std::span(order), wide_from);
  return order;
}

TEST(TorchRandperm, DrawsWhatTorchDraws) {
  EXPECT_THAT(ours(0, 6, torch_randperm_wide), ElementsAre(2, 5, 3, 0, 1, 4));
  EXPECT_EQ(ours(5, 100, torch_randperm_wide),
            ours((std::uint64_t{1} << 32) + 5, 100, torch_randperm_wide));
}

// torch uses the inside-out shuffle only for arrays of several gigabytes. The test runs our code
// for such arrays on short arrays, and compares the result with the textbook algorithm.
TEST(TorchRandperm, ShufflesInsideOutWhereItDraws64Bits) {
  EXPECT_EQ(torch_randperm_wide, 214748364U);
  for (const std::size_t size : {0U, 1U, 2U, 63U, 64U, 65U, 200U, 5000U}) {
    std::mt19937 draws(7);
    std::vector<std::int64_t> order(size);
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t high = draws();
      const std::uint64_t drawn = high << 32 | draws();
      order[i] = order[drawn % (i + 1)];
      order[drawn % (i + 1)] = static_cast<std::int64_t>(i);
    }
    EXPECT_EQ(ours(7, size, 0), order);
    EXPECT_EQ(ours(7, size, size), order);
    if (size >= 63) {
      EXPECT_NE(ours(7, size, size + 1), order);
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
