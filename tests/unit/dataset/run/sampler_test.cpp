// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/edited_stream.hpp>

#include "support/config_refusal.hpp"
#include "support/megatron_samplers.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using batches = std::vector<std::vector<std::int64_t>>;

batches positions_of(std::int64_t end, const sampler_options& options, std::int64_t rank = 0,
                     std::int64_t most = 1000,
                     std::shared_ptr<const edited_stream> edits = nullptr) {
  const sampler ranks(end, options, std::move(edits));
  batches all;
  for (std::int64_t t = 0; t < std::min(most, ranks.count()); ++t) {
    all.emplace_back();
    (void)ranks.batch(t, rank, all.back());
  }
  return all;
}

// The expected batches are the output of MegatronPretrainingSampler in Megatron-LM (development
// branch of 2026-08-22, data_samplers.py, drop_last=True). There are 20 samples, micro-batches of 2
// samples, and 3 ranks.
TEST(Sampler, GivesWhatMegatronsDoes) {
  struct run {
    std::int64_t consumed;
    std::vector<batches> ranks;
  };
  const std::vector<run> runs = {
      {0, {{{0, 1}, {6, 7}, {12, 13}}, {{2, 3}, {8, 9}, {14, 15}}, {{4, 5}, {10, 11}, {16, 17}}}},
      {6, {{{6, 7}, {12, 13}}, {{8, 9}, {14, 15}}, {{10, 11}, {16, 17}}}},
  };
  for (const run& expected : runs) {
    SCOPED_TRACE(testing::Message() << "consumed " << expected.consumed);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(
          positions_of(
              20, {.batch_size = 2, .world_size = 3, .consumed_samples = expected.consumed}, rank),
          expected.ranks[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(Sampler, DealsEverySampleOnceAndDropsOnlyWhatFillsNoStep) {
  for (std::int64_t count = 0; count <= 30; ++count) {
    for (std::int64_t world_size = 1; world_size <= 4; ++world_size) {
      for (std::int64_t batch_size = 1; batch_size <= 3; ++batch_size) {
        SCOPED_TRACE(testing::Message()
                     << count << " samples, " << world_size << " ranks, " << batch_size << " rows");
        std::vector<int> times(static_cast<std::size_t>(count));
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          for (const auto& batch :
               positions_of(count, {.batch_size = batch_size, .world_size = world_size}, rank)) {
            for (const std::int64_t sample : batch) ++times.at(static_cast<std::size_t>(sample));
          }
        }
        std::vector<int> once(static_cast<std::size_t>(count));
        std::fill_n(once.begin(), count - count % (world_size * batch_size), 1);
        EXPECT_EQ(times, once);
      }
    }
  }
}

// Without drop_last, no sample is left out. The batches equal those of Megatron's loop.
TEST(Sampler, LeavesNothingOutWhereItIsToldSo) {
  for (std::int64_t count = 1; count <= 30; ++count) {
    for (const std::int64_t ranks : {1, 2, 3, 4}) {
      for (const std::int64_t rows : {1, 2, 3}) {
        const std::int64_t consumed = count / 3 / (ranks * rows) * (ranks * rows);
        SCOPED_TRACE(testing::Message() << count << " samples, " << ranks << " ranks, " << rows
                                        << " rows, " << consumed << " consumed");
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const sampler dealt(count, {.batch_size = rows,
                                      .world_size = ranks,
                                      .drop_last = false,
                                      .consumed_samples = consumed});
          const auto megatrons = test::megatron_single(count, consumed, rows, ranks, rank, false);
          ASSERT_EQ(dealt.count(), std::ssize(megatrons));
          ASSERT_EQ(dealt.end_sample(), count);
          std::vector<std::int64_t> positions;
          for (std::int64_t t = 0; t < dealt.count(); ++t) {
            const batch_number n = dealt.batch(t, rank, positions);
            ASSERT_EQ(positions, megatrons[static_cast<std::size_t>(t)]);
            const std::int64_t first = consumed + t * ranks * rows + rank * rows;
            EXPECT_EQ(n.first_sample, std::min(count, first));
            EXPECT_EQ(n.consumed, std::min(count, consumed + (t + 1) * ranks * rows));
          }
          EXPECT_EQ(dealt.consumed_after(dealt.count()), count);
        }
      }
    }
  }
}

// A run that resumes after a short last step finds no more samples. This is not an error.
TEST(Sampler, EndsInTheMiddleOfAStep) {
  sampler_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 8};
  options.drop_last = false;
  options.consumed_samples = 8;
  EXPECT_EQ(positions_of(14, options), (batches{{8, 9}, {12, 13}}));
  options.consumed_samples = 14;
  EXPECT_EQ(positions_of(14, options), batches());
  options.drop_last = true;
  EXPECT_THROW((void)positions_of(14, options), config_error);
}

TEST(Sampler, CountsTheMicroBatchesThatAShortLastStepHas) {
  sampler_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 8};
  const auto counts = [&](std::int64_t end) {
    const sampler dealt(end, options);
    std::vector<std::int64_t> all;
    std::vector<std::int64_t> positions;
    for (std::int64_t t = 0; t < dealt.count(); ++t) {
      all.push_back(dealt.batch(t, 0, positions).micro_batches);
    }
    return all;
  };
  options.drop_last = false;
  EXPECT_THAT(counts(10), ElementsAre(2, 2, 1));
  EXPECT_THAT(counts(12), ElementsAre(2, 2, 1));
  EXPECT_THAT(counts(14), ElementsAre(2, 2, 2, 2));
  options.drop_last = true;  // training never performs an incomplete step
  EXPECT_THAT(counts(12), ElementsAre(2, 2, 2));
}

TEST(Sampler, OfOtherSamplersHasNoShortOnes) {
  for (const sampler_type type : {sampler_type::cyclic, sampler_type::full_validation}) {
    EXPECT_THAT(test::config_refusal([&] { check({.type = type, .drop_last = false}); }),
                HasSubstr("drop_last is false"));
    const sampler_options ramped{
        .type = type, .global_batch_size = 8, .rampup = rampup_batch{2, 2, 9}};
    EXPECT_THAT(test::config_refusal([&] { check(ramped); }),
                HasSubstr("a batch-size ramp-up requires the single sampler"));
    EXPECT_THAT(test::config_refusal(
                    [&] { sampler(9, {.type = type}, std::make_shared<const edited_stream>()); }),
                HasSubstr("there are edits, expected none"));
  }
}

TEST(Sampler, NumbersStepsOfTheRunAndTheirMicroBatches) {
  sampler_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 12};
  options.consumed_samples = 20;  // two micro-batches into step 1
  const sampler sequence(100, options);
  std::vector<std::int64_t> positions;
  EXPECT_EQ(sequence.batch(0, 1, positions), (batch_number{1, 2, 3, 22, 24}));
  EXPECT_THAT(positions, ElementsAre(22, 23));
  EXPECT_EQ(sequence.batch(1, 1, positions), (batch_number{2, 0, 3, 26, 28}));
  EXPECT_EQ(sequence.count(), 20);
  EXPECT_EQ(sequence.consumed_after(3), 32);
}

// With a ramp-up, the samples are the same as with a constant batch size. Only the sizes of the
// steps differ.
TEST(Sampler, RampsUpStepsAndMovesNoSample) {
  sampler_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 16};
  const batches plain = positions_of(200, options);
  options.rampup = rampup_batch{4, 4, 30};
  EXPECT_EQ(positions_of(200, options), plain);
  const sampler sequence(200, options);
  std::vector<std::int64_t> sizes;  // micro-batches per step, in order
  std::vector<std::int64_t> positions;
  for (std::int64_t t = 0; t < sequence.count(); ++t) {
    const batch_number n = sequence.batch(t, 0, positions);
    if (n.micro_batch == 0) sizes.push_back(0);
    EXPECT_EQ(n.step, static_cast<std::int64_t>(sizes.size()) - 1);
    EXPECT_EQ(n.micro_batch, sizes.back()++);
    EXPECT_LT(n.micro_batch, n.micro_batches);
  }
  sizes.resize(8);
  // The 3 increments are spread over 30 samples. So the batch size is 4 until 10 samples are
  // consumed, then 8 until 20, then 12 until 30, and then 16.
  EXPECT_THAT(sizes, ElementsAre(1, 1, 1, 2, 3, 4, 4, 4));
}

TEST(Sampler, FollowsEdits) {
  const std::vector<edit> edits = {
      {.first = 2, .last = 6, .why = "spike"},
      {.kind = edit_kind::replay, .first = 0, .last = 1, .at = 8, .why = "again"}};
  const auto stream = std::make_shared<const edited_stream>(
      edits, [](std::int64_t step) { return step * 4; },
      [](const edit&) { return std::vector<position_range>(); });
  // 4 of 12 positions are skipped, and one is served twice.
  EXPECT_EQ(positions_of(12, {.batch_size = 3}, 0, 1000, stream),
            (batches{{0, 1, 6}, {7, 0, 8}, {9, 10, 11}}));
  EXPECT_EQ(positions_of(12, {.batch_size = 3, .consumed_samples = 3}, 0, 1000, stream),
            (batches{{7, 0, 8}, {9, 10, 11}}));
}

TEST(Sampler, GoesThroughPassesOfCyclic) {
  for (const bool sharded : {true, false}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      sampler_options options = {.batch_size = 2, .world_size = 2};
      options.type = sampler_type::cyclic;
      options.data_sharding = sharded;
      batches expected = test::megatron_cyclic(23, 0, 2, 2, rank, sharded, 17);
      EXPECT_EQ(positions_of(23, options, rank, 17), expected);
      options.consumed_samples = 12;  // three batches, all in the first pass
      expected.erase(expected.begin(), expected.begin() + 3);
      EXPECT_EQ(positions_of(23, options, rank, 14), expected);
    }
  }
}

TEST(Sampler, ValidatesInFullAndStartsAgainOnRanksThatHaveLess) {
  sampler_options options = {.type = sampler_type::full_validation, .world_size = 3};
  EXPECT_EQ(positions_of(7, options), (batches{{0}, {3}, {6}}));
  EXPECT_EQ(positions_of(7, options, 2), (batches{{2}, {5}, {2}}));
  options.consumed_samples = 3;
  EXPECT_EQ(positions_of(7, options, 2), (batches{{5}, {2}}));
  options.consumed_samples = 9;  // the end is above 7, because two ranks repeat a sample
  EXPECT_EQ(positions_of(7, options), batches());
  options.consumed_samples = 12;
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(7, options); }),
              HasSubstr("consumed_samples is 12, expected at most 9, the samples of the full"));
}

TEST(Sampler, RefusesAPartOfAStepThatOtherRanksHaveBegun) {
  sampler_options options = {.world_size = 2, .global_batch_size = 6};
  options.consumed_samples = 9;  // 3 ranks had begun step 1
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(60, options); }),
              HasSubstr("consumed_samples is 9, which is 3 samples into step 1, expected a "
                        "multiple of 2 of them"));
  options.consumed_samples = 8;
  EXPECT_EQ(positions_of(60, options).size(), 26);
  options.consumed_samples = 9;
  options.global_batch_size = 0;  // there are then no steps to check
  EXPECT_EQ(positions_of(60, options).front(), std::vector<std::int64_t>{9});
  options.batch_size = 2;
  options.global_batch_size = 16;
  options.rampup = rampup_batch{4, 4, 30};  // steps begin at 0, 4, 8, 12, 20
  options.consumed_samples = 18;
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(60, options); }),
              HasSubstr("6 samples into step 3, expected a multiple of 4"));
}

TEST(Sampler, HasNoEndWhereTheRunHasNone) {
  constexpr std::int64_t unbounded = sampler::unbounded;
  EXPECT_EQ(sampler(unbounded, {.batch_size = 8}).count(), unbounded);
  const sampler_options later{.batch_size = 8, .global_batch_size = 8, .consumed_samples = 80};
  EXPECT_EQ(sampler(unbounded, later, std::make_shared<const edited_stream>()).count(), unbounded);
  EXPECT_EQ(sampler(800, {.batch_size = 8}).count(), 100);
}

TEST(Sampler, HasNothingLeftAtTheEnd) {
  EXPECT_TRUE(positions_of(0, {}).empty());
  EXPECT_TRUE(positions_of(20, {.consumed_samples = 20}).empty());
  EXPECT_TRUE(positions_of(20, {.batch_size = 21}).empty());
}

std::string refusal(std::int64_t end, const sampler_options& options) {
  return test::config_refusal([&] { sampler(end, options); });
}

TEST(Sampler, RefusesWhereItCannotBe) {
  EXPECT_THAT(refusal(20, {.consumed_samples = 21}),
              HasSubstr("consumed_samples is 21, expected at most 20"));
  EXPECT_THAT(refusal(sampler::unbounded, {.type = sampler_type::cyclic}),
              HasSubstr("needs a run with an end"));
  EXPECT_THAT(refusal(7, {.type = sampler_type::cyclic, .batch_size = 2, .world_size = 4}),
              HasSubstr("there are 7 samples, expected 8 or more"));
  EXPECT_THAT(refusal(9, {.type = sampler_type::cyclic, .world_size = 2, .consumed_samples = 3}),
              HasSubstr("consumed_samples is 3, which is 3 into its epoch of 8 samples"));
  sampler_options all = {.type = sampler_type::full_validation, .world_size = 8};
  EXPECT_THAT(refusal(7, all),
              HasSubstr("there are 7 samples for 8 ranks, expected at least one sample per rank"));
  all.world_size = 3;
  all.consumed_samples = 4;
  EXPECT_THAT(refusal(9, all), HasSubstr("consumed_samples is 4, expected a multiple of the 3"));
  all.batch_size = 2;
  EXPECT_THAT(refusal(9, all), HasSubstr("micro_batch_size is 2, expected 1"));
}

TEST(Sampler, RefusesWhatDoesNotDivide) {
  sampler_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 20};
  options.rampup = rampup_batch{2, 6, 60};
  EXPECT_THAT(refusal(99, options),
              HasSubstr("the first batch of the ramp-up is 2, expected a multiple of 4"));
  options.rampup = rampup_batch{8, 6, 60};
  EXPECT_THAT(refusal(99, options),
              HasSubstr("the increment of the ramp-up is 6, expected a multiple of 4"));
  options.rampup = rampup_batch{20, 4, 60};
  EXPECT_THAT(refusal(99, options),
              HasSubstr("rampup_batch 20 4 60: it starts with 20 samples a step"));
  EXPECT_THAT(refusal(99, {.batch_size = 2, .world_size = 4, .global_batch_size = 12}),
              HasSubstr("global_batch_size is 12, expected a multiple of 8, the micro-batch size 2 "
                        "times the 4 data-parallel ranks"));
  EXPECT_THAT(refusal(99, {.global_batch_size = -1}), HasSubstr("global_batch_size is -1"));
  EXPECT_THAT(refusal(99, {.world_size = 0}), HasSubstr("ranks is 0, expected 1 or more"));
  EXPECT_THAT(refusal(99, {.batch_size = 0}), HasSubstr("micro_batch_size is 0"));
}

TEST(Sampler, RefusesPlacesThatAreNotServed) {
  const auto refused = [](const sampler& dealt, const slot_place& slot) {
    return test::config_refusal([&] { (void)dealt.sample_of(slot); });
  };
  const sampler dealt(sampler::unbounded,
                      {.batch_size = 2, .world_size = 4, .global_batch_size = 16});
  EXPECT_THAT(refused(dealt, {0, 4, 0}), HasSubstr("rank is 4, expected 0 to 3"));
  EXPECT_THAT(refused(dealt, {0, 0, 4}), HasSubstr("slot is 4, expected 0 to 3"));
  EXPECT_THAT(refused(dealt, {-1, 0, 0}), HasSubstr("step is -1"));
  EXPECT_GT(dealt.sample_of({dealt.last_step(), 3, 3}), 0);
  EXPECT_THAT(refused(dealt, {dealt.last_step() + 1, 0, 0}), HasSubstr("step is "));
  const sampler later(22, {.batch_size = 2, .world_size = 2, .consumed_samples = 8});
  EXPECT_EQ(refused(later, {1, 1, 0}),
            "step 1, rank 1, slot 0 is sample 6, but the run starts at sample 8 "
            "(consumed_samples)");
  EXPECT_EQ(refused(later, {5, 0, 1}),
            "step 5, rank 0, slot 1 is sample 21, which is not served: the last 2 samples do not "
            "fill a micro-batch on every rank, so drop_last drops them");
  EXPECT_EQ(refused(later, {6, 0, 0}),
            "step 6, rank 0, slot 0 is sample 24, but the run has only 22");
  const sampler validated(7, {.type = sampler_type::full_validation, .world_size = 3});
  EXPECT_EQ(refused(validated, {3, 0, 0}),
            "step 3, rank 0, slot 0 is sample 9, but the run has only 9");
}

// If a run starts inside a global micro-batch, micro-batches are counted from the start of the run.
// So ranks get other samples than in an uninterrupted run.
TEST(Sampler, CountsMicroBatchesFromWhereItStarts) {
  const sampler dealt(20, {.batch_size = 2, .world_size = 2, .consumed_samples = 5});
  std::vector<std::int64_t> positions;
  EXPECT_EQ(dealt.batch(1, 1, positions), (batch_number{2, 0, 1, 11, 13}));
  EXPECT_THAT(positions, ElementsAre(11, 12));
  EXPECT_EQ(dealt.slot_of(11), (slot_place{2, 1, 0}));
  EXPECT_EQ(dealt.sample_of({2, 1, 0}), 11);
  EXPECT_EQ(dealt.first_sample_of(2), 9);
  EXPECT_EQ(dealt.first_whole_step(), 1);
  EXPECT_EQ(dealt.end_of_whole_steps(), 4);
}

// In an uninterrupted run, a rank with one micro-batch more per pass enters each later pass after
// the other ranks. After a resume, all ranks enter the pass together.
TEST(Sampler, StartsAllRanksTogetherInALaterPass) {
  sampler_options options = {.type = sampler_type::cyclic, .world_size = 2};
  options.data_sharding = false;
  const sampler whole(5, options);  // rank 0 has 3 batches per pass, but only 2 are counted
  EXPECT_EQ(whole.pass_of(4), 0);
  EXPECT_EQ(whole.pass_of(5), 1);
  options.consumed_samples = 4;
  const sampler again(5, options);
  EXPECT_EQ(again.pass_of(4), 1);
  EXPECT_EQ(again.pass_of(5), 1);
  EXPECT_EQ(whole.position_of(5), again.position_of(5));
}

// The largest accepted values must not overflow; the undefined-behavior sanitizer checks this.
TEST(Sampler, HoldsAtTheEndsOfItsRanges) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t int32 = std::numeric_limits<std::int32_t>::max();
  const sampler large(most - 1, {.batch_size = int32, .world_size = int32, .consumed_samples = 5});
  EXPECT_EQ(large.count(), 2);
  EXPECT_EQ(large.consumed_after(2), 5 + 2 * int32 * int32);
  const sampler late(most - 1, {.world_size = 2, .consumed_samples = most - 3});
  EXPECT_EQ(late.count(), 1);
  std::vector<std::int64_t> positions;
  const batch_number n = late.batch(0, 0, positions);
  EXPECT_EQ(n.consumed, most - 1);
}

}  // namespace
}  // namespace millrace::dataset
