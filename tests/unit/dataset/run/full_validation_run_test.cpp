// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/full_validation_run.hpp>

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/topology.hpp>

#include "support/config_refusal.hpp"
#include "unit/dataset/run/audited_run.hpp"
#include "unit/dataset/run/numbered_run.hpp"

namespace millrace::dataset {
namespace {

using test::numbered_run;
using testing::HasSubstr;

// Each rank's sampler, begun again where it ends before others, as a loader walks along it.
TEST(FullValidationRun, IsWhatEachRanksSamplerServes) {
  int again = 0;
  for (const std::int64_t ranks : {1, 2, 3, 7}) {
    for (std::int64_t total = ranks; total < 3 * ranks + 2; ++total) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << total << " samples");
      const numbered_run run{total + 5};
      const full_validation_run all(run, ranks, total);
      const topology dealt(ranks, 1, ranks);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const full_validation_sampler sampler(total, {1, ranks, rank});
        ASSERT_EQ(all.end(), sampler.eval_iterations() * ranks);
        for (std::int64_t t = 0; t < sampler.eval_iterations(); ++t) {
          if (t == sampler.batches()) ++again;
          ASSERT_EQ(all.at(dealt.position_of({t, rank, 0})),
                    (source_sample{0, sampler.batch(t % sampler.batches()).first}));
        }
      }
    }
  }
  EXPECT_GT(again, 10);
}

TEST(FullValidationRun, TellsWhereEachSampleIsServed) {
  for (const std::int64_t ranks : {1, 3, 4}) {
    for (std::int64_t total = ranks; total < 3 * ranks + 2; ++total) {
      const numbered_run run{total};
      const full_validation_run all(run, ranks, total);
      for (std::int64_t k = 0; k < total; ++k) {
        for (std::int64_t before = 0; before <= all.end(); ++before) {
          std::vector<std::int64_t> expected;
          for (std::int64_t n = 0; n < before; ++n) {
            if (all.at(n).k == k) expected.push_back(n);
          }
          ASSERT_EQ(all.positions_with(0, {k, k + 1}, before), expected)
              << ranks << " ranks, sample " << k << " of " << total << ", before " << before;
        }
      }
    }
  }
}

TEST(FullValidationRun, RefusesRunsThatItCannotDeal) {
  const numbered_run run{7};
  EXPECT_THAT(test::config_refusal([&] { full_validation_run(run, 8, 7); }),
              HasSubstr("there are 7 samples for 8 ranks, expected as many as ranks at least"));
  EXPECT_THAT(test::config_refusal([&] { full_validation_run(run, 2, 8); }),
              HasSubstr("to serve 8 samples, but the run has 7"));
  EXPECT_THAT(test::config_refusal([&] { full_validation_run(run, 0, 7); }),
              HasSubstr("data-parallel ranks is 0"));
}

using Audit = audited::audit_fixture;

TEST_F(Audit, CountsWhatFullValidationServes) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  const topology ranks(3, 1, 3);
  for (const std::int64_t samples : {30, 31, 32}) {
    const auto blend = test::instant_run_of({web, code}, 9, 3, samples);
    const full_validation_run all(blend, 3, samples);
    std::int64_t again = 0;
    for (const auto& [first, last] : {std::pair{0, 10}, std::pair{0, 11}, std::pair{4, 10}}) {
      if (last > all.end() / 3) continue;
      const auto ledgers = audit_run(all, ranks, first, last);
      audited::expect_sound(ledgers);
      std::int64_t served = 0;
      for (const audit_ledger& each : ledgers) {
        served += each.samples;
        for (const auto& [why, tokens] : each.replayed) again += tokens;
      }
      EXPECT_EQ(served, 3 * (last - first));
    }
    EXPECT_EQ(again > 0, samples != 30) << samples;
  }
}

}  // namespace
}  // namespace millrace::dataset
