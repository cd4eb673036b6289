// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/mixture.hpp>

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

TEST(Mixture, ComparesWhatCameWithTheWeights) {
  mixture m({{"web", 3}, {"code", 1}});
  m.served(0, 70);
  m.served(1, 30);
  const auto shares = m.shares();
  ASSERT_EQ(shares.size(), 2);
  EXPECT_EQ(shares[0].name, "web");
  EXPECT_EQ(shares[0].samples, 70);
  EXPECT_DOUBLE_EQ(shares[0].target_samples, 75);
  EXPECT_EQ(shares[1].samples, 30);
  EXPECT_DOUBLE_EQ(shares[1].target_samples, 25);
}

// New weights must apply only to batches that are served after the change.
TEST(Mixture, FollowsAChangeOfWeights) {
  mixture m({{"web", 1}, {"code", 1}, {"new", 0}});
  m.served(0, 50);
  m.served(1, 50);
  m.aim(std::vector<double>{0, 1, 3});
  m.served(2, 30);
  m.served(1, 10);
  m.aim(std::vector<double>{1, 0, 0});
  m.served(0, 60);
  const auto shares = m.shares();
  EXPECT_DOUBLE_EQ(shares[0].target_samples, 50 + 60);
  EXPECT_DOUBLE_EQ(shares[1].target_samples, 50 + 10);
  EXPECT_DOUBLE_EQ(shares[2].target_samples, 30);
}

TEST(Mixture, MayBeOfNothing) {
  EXPECT_TRUE(mixture({}).shares().empty());
}

TEST(Mixture, RefusesWeightsThatAreNone) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double weight : {-1.0, nan, infinity}) {
    try {
      const mixture refused({{"web", 1}, {"code", weight}});
      ADD_FAILURE() << weight;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("the weight of code"));
    }
  }
  EXPECT_THROW(mixture({{"web", 0}}), config_error);
}

}  // namespace
}  // namespace millrace::loader
