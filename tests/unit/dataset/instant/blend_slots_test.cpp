// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using weights = std::vector<double>;

std::string refusal(const weights& given) {
  try {
    const blend_slots slots(given);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(BlendSlots, OfOneSourceIsThatSource) {
  const blend_slots slots(weights{0.3});
  EXPECT_EQ(slots.at(1'000'000'000'000), (blend_place{0, 1'000'000'000'000}));
  EXPECT_EQ(slots.position_of({0, 17}), 17);
  EXPECT_EQ(slots.taken(0, 17), 17);
}

TEST(BlendSlots, TakesRatiosAlone) {
  const blend_slots one(weights{3, 1});
  const blend_slots other(weights{0.75, 0.25});
  EXPECT_EQ(one.period(), 65536);
  EXPECT_EQ(one.slots(0), 49152);
  for (std::int64_t p = 0; p < one.period(); ++p) ASSERT_EQ(one.at(p), other.at(p));
}

TEST(BlendSlots, RoundsByLargestRemainder) {
  // The share of each source is 21845.33 slots. Source 0 gets the remaining slot.
  const blend_slots slots(weights{1, 1, 1});
  EXPECT_EQ(slots.slots(0), 21846);
  EXPECT_EQ(slots.slots(1), 21845);
  EXPECT_EQ(slots.slots(2), 21845);
}

TEST(BlendSlots, TakesALongerPeriodForASmallWeight) {
  EXPECT_EQ(blend_slots(weights{1, 0.001}).period(), 1 << 16);
  EXPECT_EQ(blend_slots(weights{1, 0.0001}).period(), 1 << 19);
  const blend_slots slots(weights{1, 1e-6});
  EXPECT_EQ(slots.period(), 1 << 22);
  EXPECT_EQ(slots.slots(1), 4);
}

TEST(BlendSlots, RefusesWeightsThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(refusal({}), HasSubstr("has no sources"));
  EXPECT_THAT(refusal({1, 0}), AllOf(HasSubstr("weight 1 of"), HasSubstr("above 0")));
  EXPECT_THAT(refusal({-1}), HasSubstr("weight 0 of a blend is -1.0"));
  EXPECT_THAT(refusal({1, 1, nan}), HasSubstr("weight 2 of a blend is"));
  EXPECT_THAT(refusal({1, inf}), HasSubstr("weight 1 of a blend is inf"));
  EXPECT_THAT(refusal({1e308, 1e308}), HasSubstr("overflows a double"));
  EXPECT_THAT(refusal({1, 1e-8}), HasSubstr("less than 2^-22 of the sum"));
  EXPECT_THAT(refusal(weights(65537, 1)), HasSubstr("65537 sources, expected at most 65536"));
}

TEST(BlendSlots, HoldsAsManySourcesAsItSays) {
  const blend_slots slots(weights(65536, 1));
  std::vector<std::int64_t> met(65536);
  for (std::int64_t p = 0; p < 65536; ++p) ++met[static_cast<std::size_t>(slots.at(p).source)];
  EXPECT_EQ(met, std::vector<std::int64_t>(65536, 1));
}

}  // namespace
}  // namespace millrace::dataset
