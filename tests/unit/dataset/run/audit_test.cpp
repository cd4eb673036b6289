// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/where.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/coverage.hpp>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "unit/dataset/odd_mask.hpp"
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

TEST_F(Audit, CountsTrainedTokens) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  test::write_odd_mask(web);
  const auto order = test::instant_run_of({web, code}, 9, 4, 72);
  std::int64_t trained = 0;
  for (const audit_ledger& each : expect_counts(order, 2, 16)) {
    EXPECT_EQ(each.trained.has_value(), each.source == 0);
    trained += each.trained.value_or(0);
  }
  EXPECT_GT(trained, 50);
  for (const audit_ledger& each :
       expect_counts(test::megatron_run_of({web, code}, 9, "9,1,0", 72), 0, 18)) {
    EXPECT_EQ(each.trained.has_value(), each.source == 0);
  }

  const auto mask = test::suffixed(web, ".mask");
  auto bytes = test::read_bytes(mask);
  bytes[40] ^= std::byte{1};
  test::write_bytes(mask, bytes);
  EXPECT_THROW((void)audit_run(order, audited_ranks(order), 0, 18), format_error);
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
    const auto ledgers = expect_counts(alone, 0, 2 * alone.round_of(0, 0).last / 4, false);
    expect_sound(ledgers);
    EXPECT_EQ(ledgers[0].served, ledgers[0].tokens) << "all of the first epoch";
    EXPECT_GT(ledgers[0].padding, 0);
    expect_sound(expect_counts(test::packed_run_of({web, code}, 32, 4, 40, pad), 3, 8, false));
  }
}

// Documents that are longer than a row are left out, and nothing else is.
TEST_F(Audit, CountsTheDocumentsThatPackingLeavesOut) {
  const auto web = stored("web", 60);
  const auto data = indexed_dataset(web);
  std::int64_t overlong = 0;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    std::int64_t tokens = 0;
    const auto sequences = data.document(d);
    for (std::int64_t s = sequences.first; s < sequences.last; ++s)
      tokens += data.index().lengths[static_cast<std::size_t>(s)];
    if (tokens > 12) overlong += tokens;
  }
  ASSERT_GT(overlong, 0);
  for (const auto algorithm :
       {packing_algorithm::first_fit_shuffle, packing_algorithm::modified_first_fit_decreasing}) {
    const auto order = test::packed_run_of({web}, 12, 2, {}, 1, algorithm);
    const auto ledgers = expect_counts(order, 0, 2 * order.round_of(0, 0).last / 2, false);
    EXPECT_EQ(ledgers[0].served, ledgers[0].tokens - overlong) << "all of the first epoch";
    EXPECT_EQ(ledgers[0].repeated, 0);
    EXPECT_EQ(ledgers[0].holes, 0);
    EXPECT_THAT(ledgers[0].left_out, testing::ElementsAre(std::pair<std::string, std::int64_t>(
                                         "in documents longer than a row", overlong)));
  }
}

sampler cyclic_ranks(const run& order, bool sharded, std::int64_t consumed = 0) {
  return sampler(order.end(), {.type = sampler_type::cyclic,
                               .batch_size = 2,
                               .world_size = 2,
                               .data_sharding = sharded,
                               .consumed_samples = consumed});
}

TEST_F(Audit, CountsWhatTheSamplerCyclicServes) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  for (const bool sharded : {true, false}) {
    for (const std::int64_t samples : {32, 33, 34, 35}) {
      const auto blend = test::instant_run_of({web, code}, 9, 4, samples);
      const sampler cyclic = cyclic_ranks(blend, sharded);
      const auto ledgers = expect_counts(blend, cyclic, 0, 8);
      expect_sound(ledgers);
      std::int64_t passed_over = 0;
      for (const audit_ledger& each : ledgers) {
        for (const auto& [why, tokens] : each.left_out) {
          if (why.starts_with("cyclic: ")) passed_over += tokens;
        }
      }
      EXPECT_EQ(passed_over, 9 * (samples % 4)) << "of the first pass";
      expect_sound(expect_counts(blend, cyclic, 3, 27));
    }
    const auto megatron = test::megatron_run_of({web}, 9, "8,1,1", 45);
    expect_sound(expect_counts(megatron, cyclic_ranks(megatron, sharded), 0, 33));
    const auto packed = test::packed_run_of({web, code}, 32, 4, 30, 4);
    expect_sound(expect_counts(packed, cyclic_ranks(packed, sharded), 0, 20, false));
  }
}

// Rank 0 has one batch more per pass than rank 1. So rank 0 enters the next pass after rank 1, and
// skips its own first batch there. The audit reports the tokens of this batch as left out.
TEST_F(Audit, CountsRanksOfTheSamplerCyclicThatAreAhead) {
  const auto web = stored("web", 30);
  for (const std::int64_t samples : {3, 11}) {
    const auto order = test::instant_run_of({web}, 9, 2, samples);
    const sampler cyclic(order.end(),
                         {.type = sampler_type::cyclic, .world_size = 2, .data_sharding = false});
    const auto ledgers = audit_run(order, cyclic, 0, 20);
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

TEST_F(Audit, NamesThePassesOfTheSamplerCyclic) {
  const auto web = stored("web", 30);
  const std::int64_t windows = test::instant_run_of({web}, 9, 4, {}).round_of(0, 0).last;
  const auto order = test::instant_run_of({web}, 9, 4, windows + 8);  // a pass spans two epochs
  const sampler ranks = cyclic_ranks(order, true);
  const std::int64_t second = order.end() / 4;  // number of steps in the first pass
  const auto ledgers = audit_run(order, ranks, second, second + 4);
  ASSERT_FALSE(ledgers.empty());
  for (const audit_ledger& each : ledgers) {
    const std::int64_t epoch = (each.round.first - 2 * windows) / windows;
    EXPECT_EQ(each.round.name, "pass 1, epoch " + std::to_string(epoch));
    EXPECT_EQ(each.round.first, (2 + epoch) * windows);
    EXPECT_EQ(each.round.last, each.round.first + windows);
  }
}

// Samples that were served before the start of the run are not missing. So the audit does not
// report them.
TEST_F(Audit, CountsFromWhereARunStarts) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 2, 41);
  for (const bool sharded : {true, false}) {
    for (const std::int64_t consumed : {4, 40, 52}) {
      const sampler ranks = cyclic_ranks(order, sharded, consumed);
      expect_sound(expect_counts(order, ranks, consumed / 4, consumed / 4 + 25));
    }
  }
  const sampler single(order.end(), {.batch_size = 2, .world_size = 2, .consumed_samples = 9});
  EXPECT_EQ(single.first_whole_step(), 2);
  expect_sound(expect_counts(order, single, 2, single.end_of_whole_steps()));
  EXPECT_THAT(
      test::config_refusal([&] { return audit_run(order, single, 1, 3); }),
      HasSubstr("steps 1 to 3, expected an ascending range within 2 to 10, the complete steps"));
}

TEST_F(Audit, CountsWhatFullValidationServes) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  for (const std::int64_t samples : {30, 31, 32}) {
    const auto blend = test::instant_run_of({web, code}, 9, 3, samples);
    const sampler all(samples, {.type = sampler_type::full_validation, .world_size = 3});
    std::int64_t again = 0;
    for (const auto& [first, last] : {std::pair{0, 10}, std::pair{0, 11}, std::pair{4, 10}}) {
      if (last > all.end_of_whole_steps()) continue;
      const auto ledgers = audit_run(blend, all, first, last);
      expect_sound(ledgers);
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

TEST_F(Audit, CountsStepsThatGrow) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, 60);
  const sampler ranks(order.end(), {.batch_size = 2,
                                    .world_size = 2,
                                    .global_batch_size = 12,
                                    .rampup = rampup_batch{4, 4, 24}});
  const std::int64_t end = ranks.end_of_whole_steps();
  const auto ledgers = audit_run(order, ranks, 1, end);
  expect_sound(ledgers);
  std::int64_t samples = 0;
  for (const audit_ledger& each : ledgers) samples += each.samples;
  EXPECT_EQ(samples, ranks.first_sample_of(end) - 4);
}

TEST_F(Audit, SaysWhyTokensAreLeftOut) {
  const auto web = stored("web", 30);
  const auto megatron = test::megatron_run_of({web}, 10, "7,2,1", {});
  const auto ledgers = audit_run(megatron, audited_ranks(megatron), 0, megatron.end() / 4);
  ASSERT_THAT(ledgers, SizeIs(1));
  ASSERT_THAT(ledgers[0].left_out, SizeIs(2));
  EXPECT_EQ(ledgers[0].left_out[0].first, "of other parts of --split");
  EXPECT_GT(ledgers[0].left_out[0].second, 0);
  EXPECT_EQ(ledgers[0].left_out[1].first, "after the last sample");
  EXPECT_EQ(ledgers[0].left_out[1].second, megatron.plan(0).tokens() - 10 * megatron.end());
  EXPECT_EQ(ledgers[0].not_in_steps, 10 * (megatron.end() % 4));
}

TEST_F(Audit, FindsAPlantedDuplicateAndAPlantedHole) {
  expect_found(test::instant_run_of({stored("web", 30)}, 9, 4, {}));
  expect_found(test::megatron_run_of({stored("code", 30)}, 9, "1,0,0", {}));
  const auto passed = test::megatron_run_of({stored("cyclic", 30)}, 9, "1,0,0", {});
  expect_found(passed, cyclic_ranks(passed, true));
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
      (void)audit_run(order, audited_ranks(order), first, last);
      ADD_FAILURE() << first << " to " << last;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(),
                  HasSubstr("expected an ascending range within 0 to 4, the complete steps"));
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
