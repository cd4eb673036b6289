// SPDX-License-Identifier: Apache-2.0
#include "report/estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace millrace::preprocess {
namespace {

TEST(ScaledUp, IsTheRatioTimesTheTotal) {
  const std::vector<sampled_amount> pieces = {{10, 3}, {30, 5}};
  EXPECT_DOUBLE_EQ(scaled_up(pieces, {400, 0}).value, 80);
}

TEST(ScaledUp, IsExactWhereThePiecesAreAll) {
  const std::vector<sampled_amount> pieces = {{10, 3}, {30, 5}};
  EXPECT_DOUBLE_EQ(scaled_up(pieces, {40, 0}).value, 8);
  EXPECT_EQ(scaled_up(pieces, {40, 0}).error, 0);
}

TEST(ScaledUp, HasNoErrorWherePiecesAreAlike) {
  const std::vector<sampled_amount> pieces = {{10, 5}, {30, 15}, {2, 1}};
  EXPECT_NEAR(scaled_up(pieces, {1000, 0}).error, 0, 1e-9);
}

TEST(ScaledUp, CarriesTheErrorOfTheTotal) {
  const std::vector<sampled_amount> pieces = {{10, 5}, {30, 15}};
  EXPECT_NEAR(scaled_up(pieces, {1000, 100}).error, 50, 1e-9);
}

TEST(ScaledUp, TrustsNoSinglePiece) {
  const std::vector<sampled_amount> pieces = {{10, 5}};
  EXPECT_DOUBLE_EQ(scaled_up(pieces, {100, 0}).error, 50);
}

TEST(ScaledUp, KnowsNothingFromNothing) {
  EXPECT_EQ(scaled_up({}, {100, 0}).value, 0);
  const std::vector<sampled_amount> empty = {{0, 0}, {0, 0}};
  EXPECT_EQ(scaled_up(empty, {100, 0}).value, 0);
}

// The estimated error is right: over many samples of a population, the root-mean-square error of
// the estimates differs from the estimated error by at most 10 %.
TEST(ScaledUp, ScattersByItsError) {
  std::mt19937 random(7);
  std::vector<sampled_amount> population;
  double bytes = 0;
  for (int i = 0; i < 400; ++i) {
    const double size = 50 + static_cast<double>(random() % 100);
    population.push_back({size, size * 0.25 + static_cast<double>(random() % 20)});
    bytes += size;
  }
  double truth = 0;
  for (const sampled_amount& each : population) truth += each.amount;
  double squares = 0;
  double said = 0;
  constexpr int rounds = 2000;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(population.begin(), population.end(), random);
    const std::vector<sampled_amount> sample(population.begin(), population.begin() + 80);
    const estimate found = scaled_up(sample, {bytes, 0});
    squares += (found.value - truth) * (found.value - truth);
    said += found.error * found.error;
  }
  EXPECT_NEAR(std::sqrt(squares / rounds) / std::sqrt(said / rounds), 1, 0.1);
}

TEST(Estimates, AddUpAsIndependentOnes) {
  estimate sum{10, 3};
  sum += {20, 4};
  EXPECT_EQ(sum.value, 30);
  EXPECT_DOUBLE_EQ(sum.error, 5);
}

TEST(MeanOf, HasTheErrorOfAMean) {
  const std::vector<double> values = {2, 4, 6, 8};
  EXPECT_EQ(mean_of(values).value, 5);
  EXPECT_NEAR(mean_of(values).error, std::sqrt(20.0 / 3 / 4), 1e-12);
  EXPECT_EQ(mean_of({}).value, 0);
}

}  // namespace
}  // namespace millrace::preprocess
