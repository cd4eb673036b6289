// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/cyclic_run.hpp>

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/topology.hpp>

#include "support/config_refusal.hpp"
#include "unit/dataset/run/numbered_run.hpp"

namespace millrace::dataset {
namespace {

using test::numbered_run;
using testing::HasSubstr;

// Each rank's passes, one sampler after another, as a loader walks along them.
TEST(CyclicRun, IsWhatEachRanksSamplersServe) {
  int ahead = 0;
  for (const std::int64_t ranks : {1, 2, 3, 5}) {
    for (const std::int64_t b : {1, 2, 3}) {
      for (std::int64_t total = ranks * b; total < 5 * ranks * b + 2; ++total) {
        for (const bool sharded : {true, false}) {
          SCOPED_TRACE(testing::Message() << ranks << " ranks of " << b << ", " << total
                                          << " samples, sharded " << sharded);
          const numbered_run run{total};
          const cyclic_run cyclic(run, {b, ranks, 0}, sharded);
          const topology dealt(ranks, b, ranks * b);
          const std::int64_t stride = (total + 9) / 10 * 10;
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            cyclic_sampler pass(total, 0, {b, ranks, rank}, sharded);
            std::int64_t in_pass = 0;
            if (pass.batches() > total / (ranks * b)) ++ahead;
            for (std::int64_t t = 0; t < 23; ++t) {
              if (in_pass == pass.batches()) {
                pass = pass.next_pass();
                in_pass = 0;
              }
              const auto batch = pass.batch(in_pass++);
              for (std::int64_t row = 0; row < b; ++row) {
                const auto sample = cyclic.at(dealt.position_of({t, rank, row}));
                ASSERT_EQ(sample.k / stride, pass.epoch()) << t;
                ASSERT_EQ(sample.k % stride, batch[static_cast<std::size_t>(row)]) << t;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(ahead, 10);
}

TEST(CyclicRun, NamesItsPasses) {
  const numbered_run run{24};
  const cyclic_run cyclic(run, {2, 2, 0});
  const sample_round round = cyclic.round_of(0, 30 + 15);
  EXPECT_EQ(round.first, 40);
  EXPECT_EQ(round.last, 50);
  EXPECT_EQ(round.name, "pass 1, epoch 1");
}

TEST(CyclicRun, RefusesRunsThatItCannotDeal) {
  const numbered_run few{7};
  EXPECT_THAT(test::config_refusal([&] {
                cyclic_run(few, {2, 4, 0});
              }),
              HasSubstr("there are 7 samples, expected 8 or more"));
  const numbered_run endless{most_positions};
  EXPECT_THAT(test::config_refusal([&] {
                cyclic_run(endless, {2, 4, 0});
              }),
              HasSubstr("the sampler cyclic needs a run with an end"));
}

}  // namespace
}  // namespace millrace::dataset
