// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/audit.hpp>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/cyclic_run.hpp>

#include "unit/dataset/run/audited_run.hpp"

namespace millrace::dataset {
namespace {

using audited::audited_ranks;
using audited::damaged;
using audited::expect_counts;
using audited::expect_sound;
using testing::HasSubstr;
using testing::SizeIs;

using Audit = audited::audit_fixture;

TEST_F(Audit, CountsWhatMegatronServes) {
  for (int round = 0; round < 5; ++round) {
    const auto web = stored("web" + std::to_string(round), 30);
    for (const std::optional<std::int64_t> samples : {std::optional<std::int64_t>(), {90}}) {
      const auto order = test::megatron_run_of({web}, 7 + round, "8,1,1", samples);
      const std::int64_t steps = order.end() / 4;
      expect_sound(expect_counts(order, 0, steps));
      expect_sound(expect_counts(order, 1, 4));
    }
  }
}

TEST_F(Audit, CountsWhatInstantServes) {
  for (int round = 0; round < 5; ++round) {
    const auto web = stored("web" + std::to_string(round), 30);
    const auto order = test::instant_run_of({web}, 7 + round, 4, {});
    const auto ledgers = expect_counts(order, 0, 40);
    EXPECT_GT(ledgers.size(), 2U);
    EXPECT_EQ(ledgers.front().not_in_steps, 0);
    expect_sound(ledgers);
    expect_sound(expect_counts(order, 3, 30));
  }
}

TEST_F(Audit, CountsWhatBlendsServe) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  expect_sound(expect_counts(test::megatron_run_of({web, code}, 9, "9,1,0", 72), 0, 18));
  expect_sound(expect_counts(test::instant_run_of({web, code}, 9, 4, 72), 0, 18));
  expect_sound(expect_counts(test::instant_run_of({web, code}, 9, 4, 72), 5, 11));
}

TEST_F(Audit, CountsWhatPackedRowsServe) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  for (const std::int64_t pad : {1, 4}) {
    const auto alone = test::packed_run_of({web}, 32, 4, {}, pad);
    const auto ledgers = expect_counts(alone, 0, 2 * alone.info(0).rows / 4, false);
    expect_sound(ledgers);
    EXPECT_EQ(ledgers[0].served, ledgers[0].tokens) << "all of the first epoch";
    EXPECT_GT(ledgers[0].padding, 0);
    expect_sound(expect_counts(test::packed_run_of({web, code}, 32, 4, 40, pad), 3, 8, false));
  }
}

TEST_F(Audit, CountsWhatTheSamplerCyclicServes) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  const data_share share{2, 2, 0};  // as audited_ranks
  for (const bool sharded : {true, false}) {
    for (const std::int64_t samples : {32, 33, 34, 35}) {
      const auto blend = test::instant_run_of({web, code}, 9, 4, samples);
      const cyclic_run cyclic(blend, share, sharded);
      const auto ledgers = expect_counts(cyclic, 0, 8);
      expect_sound(ledgers);
      std::int64_t passed_over = 0;
      for (const audit_ledger& each : ledgers) {
        for (const auto& [why, tokens] : each.left_out) {
          if (why.starts_with("cyclic: ")) passed_over += tokens;
        }
      }
      EXPECT_EQ(passed_over, 9 * (samples % 4)) << "of the first pass";
      expect_sound(expect_counts(cyclic, 3, 27));
    }
    const auto megatron = test::megatron_run_of({web}, 9, "8,1,1", 45);
    expect_sound(expect_counts(cyclic_run(megatron, share, sharded), 0, 33));
    const auto packed = test::packed_run_of({web, code}, 32, 4, 30, 4);
    expect_sound(expect_counts(cyclic_run(packed, share, sharded), 0, 20, false));
  }
}

// Rank 0 has a batch more than rank 1, and goes on with the next pass before it, and without its
// first batch.
TEST_F(Audit, CountsRanksOfTheSamplerCyclicThatAreAhead) {
  const auto web = stored("web", 30);
  for (const std::int64_t samples : {3, 11}) {
    const auto order = test::instant_run_of({web}, 9, 2, samples);
    const cyclic_run cyclic(order, data_share{1, 2, 0}, false);
    const auto ledgers = audit_run(cyclic, topology(2, 1, 2), 0, 20);
    expect_sound(ledgers);
    std::int64_t passed_over = 0;
    for (const audit_ledger& each : ledgers) {
      for (const auto& [why, tokens] : each.left_out) {
        if (why.starts_with("cyclic: ")) passed_over += tokens;
      }
    }
    EXPECT_GT(passed_over, 0);
  }
}

TEST_F(Audit, CountsStepsThatGrow) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, 60);
  const topology ranks(2, 2, 12, rampup_batch{4, 4, 24});
  const auto ledgers = audit_run(order, ranks, 1, ranks.whole_steps(60));
  expect_sound(ledgers);
  std::int64_t samples = 0;
  for (const audit_ledger& each : ledgers) samples += each.samples;
  EXPECT_EQ(samples, ranks.first_position(ranks.whole_steps(60)) - 4);
}

TEST_F(Audit, SaysWhyTokensAreLeftOut) {
  const auto web = stored("web", 30);
  const auto megatron = test::megatron_run_of({web}, 10, "7,2,1", {});
  const auto ledgers = audit_run(megatron, audited_ranks, 0, megatron.end() / 4);
  ASSERT_THAT(ledgers, SizeIs(1));
  ASSERT_THAT(ledgers[0].left_out, SizeIs(2));
  EXPECT_EQ(ledgers[0].left_out[0].first, "of other parts of --split");
  EXPECT_GT(ledgers[0].left_out[0].second, 0);
  EXPECT_EQ(ledgers[0].left_out[1].first, "behind the last sample");
  EXPECT_EQ(ledgers[0].left_out[1].second, megatron.plan(0).tokens() - 10 * megatron.end());
  EXPECT_EQ(ledgers[0].not_in_steps, 10 * (megatron.end() % 4));
}

TEST_F(Audit, FindsAPlantedDuplicateAndAPlantedHole) {
  expect_found(test::instant_run_of({stored("web", 30)}, 9, 4, {}));
  expect_found(test::megatron_run_of({stored("code", 30)}, 9, "1,0,0", {}));
  const auto passed = test::megatron_run_of({stored("cyclic", 30)}, 9, "1,0,0", {});
  expect_found(cyclic_run(passed, data_share{2, 2, 0}));
}

TEST_F(Audit, FindsAPackedRowThatIsServedTwice) {
  damaged bad(test::packed_run_of({stored("web", 60)}, 32, 4, {}));
  const auto tokens_of = [&](std::int64_t position) {
    std::vector<piece> pieces;
    return bad.seq_len() - bad.pieces(bad.at(position), pieces);
  };
  bad.instead[5] = 4;
  const auto ledgers = expect_counts(bad, 0, 3, false);
  ASSERT_THAT(ledgers, SizeIs(1));
  EXPECT_EQ(ledgers[0].repeated, tokens_of(4));
  bad.instead.clear();
  EXPECT_EQ(ledgers[0].holes, tokens_of(5));
}

TEST_F(Audit, RefusesStepsThatAreNotThere) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, 18);
  for (const auto& [first, last] : {std::pair(0, 5), {2, 2}, {-1, 2}}) {
    try {
      (void)audit_run(order, audited_ranks, first, last);
      ADD_FAILURE() << first << " to " << last;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("expected two that ascend in 0 to 4, the whole steps"));
    }
  }
}

TEST(Coverage, ForgetsWhereRunsMeet) {
  coverage counted;
  for (std::int64_t i = 0; i < 100000; ++i) {
    const std::int64_t shuffled = i * 7919 % 100000;
    counted.add(10 * shuffled, 10 * shuffled + 10);
  }
  EXPECT_EQ(counted.tokens(), 1000000);
  ASSERT_THAT(counted.changes(), SizeIs(2));
  EXPECT_EQ(counted.changes()[1].at, 1000000);
  EXPECT_EQ(counted.changes()[0].change, 1);
}

}  // namespace
}  // namespace millrace::dataset
