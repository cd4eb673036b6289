// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/error.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::int64_t batches_of_ten(std::int64_t step) {
  return 10 * step;
}

std::vector<source_limit> unlimited(std::size_t count) {
  std::vector<source_limit> limits;
  for (std::size_t i = 0; i < count; ++i) limits.push_back({std::string(1, char('a' + i)), {}});
  return limits;
}

std::string refusal(const std::vector<schedule_segment>& segments, std::vector<source_limit> limits,
                    std::optional<std::int64_t> train_samples = std::nullopt) {
  try {
    const schedule plan(segments, std::move(limits), batches_of_ten, train_samples);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

// Each source continues at the sample where it stopped, even after a pause. Consumed samples do not
// change. So data can be added in the middle of a run.
TEST(Schedule, GoesOnWhereEachSourceWasLeft) {
  const std::vector<schedule_segment> before = {{0, {{0, 0.5}, {1, 0.5}}}};
  const std::vector<schedule_segment> after = {
      {0, {{0, 0.5}, {1, 0.5}}}, {100, {{2, 1}, {0, 3}}}, {250, {{1, 1}, {2, 1}, {0, 1}}}};
  const schedule old(before, unlimited(2), batches_of_ten);
  const schedule now(after, unlimited(3), batches_of_ten);
  std::vector<std::int64_t> next(3);
  for (std::int64_t p = 0; p < 5000; ++p) {
    const blend_place place = now.at(p);
    ASSERT_EQ(place.k, next[static_cast<std::size_t>(place.source)]++) << p;
    if (p < 1000) {
      ASSERT_EQ(place, old.at(p)) << p;
    }
    ASSERT_EQ(now.position_of(place), p);
    ASSERT_FALSE(1000 <= p && p < 2500 && place.source == 1) << p;
  }
  for (std::int64_t s = 0; s < 3; ++s) {
    EXPECT_EQ(now.taken(s, 5000), next[static_cast<std::size_t>(s)]);
  }
  EXPECT_EQ(now.end(), schedule::unbounded);
  EXPECT_EQ(old.position_of({1, std::int64_t{1} << 62}), std::nullopt);
}

TEST(Schedule, BeginsASegmentWhereTheRampUpPutsItsStep) {
  const auto ramp = [](std::int64_t step) { return step < 4 ? 2 * step : 8 + 5 * (step - 4); };
  const std::vector<schedule_segment> segments = {{0, {{0, 1}}}, {6, {{1, 1}}}};
  const schedule plan(segments, unlimited(2), ramp);
  EXPECT_EQ(plan.at(17), (blend_place{0, 17}));
  EXPECT_EQ(plan.at(18), (blend_place{1, 0}));
  EXPECT_EQ(plan.position_of({0, 18}), std::nullopt);
}

TEST(Schedule, NamesTheFirstStepThatExceedsALimit) {
  auto limits = unlimited(2);
  limits[0].most_samples = 95;
  const std::vector<schedule_segment> halves = {{0, {{0, 1}, {1, 1}}}};
  const schedule open_end(halves, limits, batches_of_ten);
  ASSERT_TRUE(open_end.exceeded());
  EXPECT_EQ(open_end.exceeded()->source, 0);
  EXPECT_EQ(open_end.exceeded()->step, 19);
  EXPECT_EQ(open_end.taken(0, open_end.end()), 95);
  const std::int64_t most = open_end.end();

  EXPECT_EQ(refusal(halves, limits, most), "accepted");
  EXPECT_THAT(
      refusal(halves, limits, most + 1),
      AllOf(HasSubstr("step 19 would take more than the 95 samples"), HasSubstr("of source a")));
  // The error names the step in which the source runs out of samples, even if another segment takes
  // more samples from this source.
  EXPECT_THAT(refusal({{0, {{0, 1}, {1, 1}}}, {5, {{1, 1}}}, {50, {{0, 1}}}}, limits, 1000),
              HasSubstr("step 57 would"));
}

// The schedule asks its caller for the first position of a step, which is a 64-bit number. It never
// asks about a step whose first position would overflow.
TEST(Schedule, AsksForNoStepThatOverflows) {
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{4096}}) {
    const auto checked = [batch](std::int64_t step) {
      std::int64_t position = 0;
      EXPECT_FALSE(__builtin_mul_overflow(step, batch, &position)) << step;
      return position;
    };
    for (int bits = 0; bits < 63; ++bits) {
      auto limits = unlimited(1);
      limits[0].most_samples = std::int64_t{1} << bits;
      const std::vector<schedule_segment> one = {{0, {{0, 1}}}};
      const schedule plan(one, limits, checked);
      ASSERT_EQ(plan.exceeded().has_value(), bits < 62);
      if (bits == 62) continue;
      EXPECT_EQ(plan.exceeded()->step, (std::int64_t{1} << bits) / batch);
      EXPECT_EQ(plan.end(), std::int64_t{1} << bits);
    }
  }
}

TEST(Schedule, RefusesFirstPositionsThatDoNotAscendFromZero) {
  const auto of = [](const schedule::first_position& first_position_of) -> std::string {
    auto limits = unlimited(1);
    limits[0].most_samples = 100;
    try {
      const schedule plan(std::vector<schedule_segment>{{0, {{0, 1}}}}, limits, first_position_of);
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(of([](std::int64_t step) { return step + 1; }),
              HasSubstr("first_position_of(0) is 1, expected 0"));
  EXPECT_THAT(of([](std::int64_t) { return std::int64_t{0}; }),
              HasSubstr("first_position_of(1) is 0, expected 1 or more"));
}

TEST(Schedule, RefusesWhatIsNoSchedule) {
  EXPECT_THAT(refusal({{0, {{0, 1}}}, {(std::int64_t{1} << 40) + 1, {{0, 1}}}}, unlimited(1)),
              HasSubstr("expected a step after 0, up to 2^40"));
  EXPECT_THAT(refusal({{0, {{0, 1}}}}, unlimited(1), (std::int64_t{1} << 62) + 1),
              HasSubstr("expected 1 to 2^62"));
  EXPECT_THAT(refusal({}, unlimited(1)), HasSubstr("has no segments"));
  EXPECT_THAT(refusal({{1, {{0, 1}}}}, unlimited(1)), HasSubstr("from step 1 on: expected step 0"));
  EXPECT_THAT(refusal({{0, {{0, 1}}}, {5, {{0, 1}}}, {5, {{0, 1}}}}, unlimited(1)),
              HasSubstr("segment 2 of the schedule, from step 5 on: expected a step after 5"));
  EXPECT_THAT(refusal({{0, {{1, 1}}}}, unlimited(1)), HasSubstr("names source 1"));
  EXPECT_THAT(refusal({{0, {{0, 1}, {0, 1}}}}, unlimited(1)), HasSubstr("source a twice"));
  EXPECT_THAT(refusal({{0, {}}}, unlimited(1)), HasSubstr("from step 0 on: a blend has no"));
  EXPECT_THAT(refusal({{0, {{0, -1}}}}, unlimited(1)), HasSubstr("weight 0 of a blend is -1"));
  EXPECT_THAT(refusal({{0, {{0, 1}}}, {10, {{0, 1}}}}, unlimited(1), 100),
              AllOf(HasSubstr("segment 1 "), HasSubstr("sample 100"), HasSubstr("train_samples")));
  EXPECT_THAT(refusal({{0, {{0, 1}}}}, unlimited(1), 0), HasSubstr("train_samples is 0"));
}

}  // namespace
}  // namespace millrace::dataset
