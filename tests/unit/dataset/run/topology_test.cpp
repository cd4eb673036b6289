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
        EXPECT_EQ(dealt.slots(), b * micro_batches);
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const single_sampler sampler(1000, 0, {b, ranks, rank});
          for (std::int64_t step = 0; step < 3; ++step) {
            for (std::int64_t slot = 0; slot < dealt.slots(); ++slot) {
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

TEST(Topology, RefusesWhatDoesNotDivide) {
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
