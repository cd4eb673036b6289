// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/cyclic_run.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/topology.hpp>

#include "support/config_refusal.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

/// A run of `samples` samples, in rounds of 10, of which only the numbers matter.
struct numbered_run {
  std::int64_t samples;

  std::int64_t end() const { return samples; }
  std::int64_t seq_len() const { return 1; }
  std::int64_t source_count() const { return 1; }
  std::filesystem::path prefix(std::int64_t) const { return "numbers"; }
  source_sample at(std::int64_t position) const { return {0, position}; }
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    out = {{0, sample.k, 1}};
    return 0;
  }
  std::vector<std::int64_t> positions_with(std::int64_t, sequence_range, std::int64_t) const {
    return {};
  }
  std::int64_t taken(std::int64_t, std::int64_t positions) const { return positions; }
  sample_round round_of(std::int64_t, std::int64_t k) const {
    return {k / 10 * 10, k / 10 * 10 + 10, 1, "epoch " + std::to_string(k / 10)};
  }
  std::vector<left_out> left_out_of(std::int64_t, const sample_round&) const { return {}; }
};

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
