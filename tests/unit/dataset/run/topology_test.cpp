// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/topology.hpp>

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/megatron/range_samplers.hpp>

#include "support/config_refusal.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

// Slot s of a step is row s mod b of micro-batch s / b of the sampler that Megatron has.
TEST(Topology, DealsAsTheSingleSamplerDoes) {
  for (const std::int64_t ranks : {1, 2, 3, 8}) {
    for (const std::int64_t b : {1, 2, 5}) {
      for (const std::int64_t micro_batches : {1, 4}) {
        const topology dealt(ranks, b, ranks * b * micro_batches);
        EXPECT_EQ(dealt.slots(0), b * micro_batches);
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const single_sampler sampler(1000, 0, {b, ranks, rank});
          for (std::int64_t step = 0; step < 3; ++step) {
            for (std::int64_t slot = 0; slot < dealt.slots(step); ++slot) {
              const slot_place place{step, rank, slot};
              const std::int64_t position = dealt.position_of(place);
              EXPECT_EQ(position, sampler.batch(step * micro_batches + slot / b).first + slot % b);
              EXPECT_EQ(dealt.place_of(position), place);
            }
          }
        }
      }
    }
  }
}

// Position after position, micro-batch after micro-batch, as the sampler goes on through all steps.
TEST(Topology, DealsStepsThatGrow) {
  const rampup_batch rampup{4, 8, 60};
  const topology dealt(2, 2, 20, rampup);
  const batch_steps steps(20, rampup);
  std::int64_t position = 0;
  for (std::int64_t step = 0; step < 12; ++step) {
    ASSERT_EQ(dealt.first_position(step), position);
    ASSERT_EQ(dealt.slots(step), steps.samples_of(step) / 2);
    for (std::int64_t m = 0; m < dealt.slots(step) / 2; ++m) {
      for (std::int64_t rank = 0; rank < 2; ++rank) {
        for (std::int64_t row = 0; row < 2; ++row, ++position) {
          const slot_place place{step, rank, 2 * m + row};
          ASSERT_EQ(dealt.position_of(place), position);
          ASSERT_EQ(dealt.place_of(position), place);
        }
      }
    }
    ASSERT_EQ(dealt.whole_steps(position), step + 1);
    ASSERT_EQ(dealt.whole_steps(position - 1), step);
  }
  EXPECT_EQ(dealt.slots(0), 2);
  EXPECT_EQ(dealt.slots(11), 10);
  EXPECT_THAT(test::config_refusal([&] {
                (void)dealt.position_of({0, 0, 2});
              }),
              HasSubstr("slot is 2, expected 0 to 1"));
  EXPECT_GT(dealt.position_of({dealt.last_step(), 1, 9}), 0);
}

TEST(Topology, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(test::config_refusal([] {
                topology(2, 2, 20, rampup_batch{2, 6, 60});
              }),
              HasSubstr("the first batch of the ramp-up is 2, expected a multiple of 4"));
  EXPECT_THAT(test::config_refusal([] {
                topology(2, 2, 20, rampup_batch{8, 6, 60});
              }),
              HasSubstr("the increment of the ramp-up is 6, expected a multiple of 4"));
  EXPECT_THAT(test::config_refusal([] {
                topology(2, 2, 20, rampup_batch{20, 4, 60});
              }),
              HasSubstr("rampup_batch 20 4 60: it starts with 20 samples a step"));
  EXPECT_THAT(test::config_refusal([] { topology(4, 2, 12); }),
              HasSubstr("global_batch_size is 12, expected a multiple of 8"));
  EXPECT_THAT(test::config_refusal([] { topology(4, 2, 0); }), HasSubstr("global_batch_size is 0"));
  EXPECT_THAT(test::config_refusal([] { topology(0, 2, 8); }),
              HasSubstr("ranks is 0, expected 1 or more"));
  EXPECT_THAT(test::config_refusal([] { topology(4, 0, 8); }), HasSubstr("micro_batch_size is 0"));
}

TEST(Topology, RefusesPlacesThatAreNotThere) {
  const topology dealt(4, 2, 16);
  EXPECT_THAT(test::config_refusal([&] {
                (void)dealt.position_of({0, 4, 0});
              }),
              HasSubstr("rank is 4, expected 0 to 3"));
  EXPECT_THAT(test::config_refusal([&] {
                (void)dealt.position_of({0, 0, 4});
              }),
              HasSubstr("slot is 4, expected 0 to 3"));
  EXPECT_THAT(test::config_refusal([&] {
                (void)dealt.position_of({-1, 0, 0});
              }),
              HasSubstr("step is -1"));
  EXPECT_GT(dealt.position_of({dealt.last_step(), 3, 3}), 0);
  EXPECT_THAT(test::config_refusal([&] {
                (void)dealt.position_of({dealt.last_step() + 1, 0, 0});
              }),
              HasSubstr("step is "));
}

}  // namespace
}  // namespace millrace::dataset
