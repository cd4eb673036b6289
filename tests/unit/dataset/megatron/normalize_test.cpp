// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/normalize.hpp>

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::ElementsAre;

std::vector<double> uneven(int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(i % 7 / 3.0 + 0.1);
  return values;
}

// Sums must equal those of numpy 2.4.6, which does not add numbers from first to last. Adding 0.1
// ten times from first to last gives less than 1.
TEST(Normalize, SumsInTheOrderOfNumpy) {
  EXPECT_EQ(numpy_sum(std::vector<double>(10, 0.1)), 0x1.0p+0);
  EXPECT_EQ(numpy_sum(std::vector<double>(3, 1.0 / 3)), 0x1.0p+0);
  EXPECT_EQ(numpy_sum(std::vector<double>{0.3, 0.3, 0.1, 0.2, 0.15, 0.7, 0.11}),
            0x1.dc28f5c28f5c2p+0);
  EXPECT_EQ(numpy_sum(uneven(129)), 0x1.17ccccccccccdp+7);
  EXPECT_EQ(numpy_sum(uneven(1000)), 0x1.12c0000000000p+10);
  EXPECT_EQ(numpy_sum({}), 0.0);
  EXPECT_FALSE(std::signbit(numpy_sum({})));
}

TEST(Normalize, DividesByTheSum) {
  EXPECT_THAT(normalize(std::vector<double>{969, 30, 1}), ElementsAre(0.969, 0.03, 0.001));
  EXPECT_THAT(normalize(std::vector<double>{0.5, 0, 0}), ElementsAre(1.0, 0.0, 0.0));
}

}  // namespace
}  // namespace millrace::dataset
