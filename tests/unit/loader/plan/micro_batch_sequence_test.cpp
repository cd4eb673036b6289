// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/plan/micro_batch_sequence.hpp>

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

#include "support/config_refusal.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using batches = std::vector<std::vector<std::int64_t>>;

batches positions_of(std::int64_t end, const loader_options& options, std::int64_t most = 1000,
                     std::shared_ptr<const dataset::edited_stream> edits = nullptr) {
  micro_batch_sequence sequence(end, check(options), std::move(edits));
  batches all;
  batch_number number;
  std::vector<std::int64_t> positions;
  while (most-- > 0 && sequence.next(number, positions)) all.push_back(positions);
  if (sequence.count() != micro_batch_sequence::unbounded && most > 0) {
    EXPECT_EQ(static_cast<std::int64_t>(all.size()), sequence.count());
  }
  return all;
}

// What Megatron-LM's own MegatronPretrainingSampler yielded (development branch of 2026-08-22,
// data_samplers.py, drop_last=True): 20 samples, micro-batches of 2, 3 ranks.
TEST(MicroBatchSequence, GivesWhatMegatronsDoes) {
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
      EXPECT_EQ(positions_of(20, {.batch_size = 2,
                                  .rank = rank,
                                  .world_size = 3,
                                  .consumed_samples = expected.consumed}),
                expected.ranks[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(MicroBatchSequence, DealsEverySampleOnceAndDropsOnlyWhatFillsNoStep) {
  for (std::int64_t count = 0; count <= 30; ++count) {
    for (std::int64_t world_size = 1; world_size <= 4; ++world_size) {
      for (std::int64_t batch_size = 1; batch_size <= 3; ++batch_size) {
        SCOPED_TRACE(testing::Message()
                     << count << " samples, " << world_size << " ranks, " << batch_size << " rows");
        std::vector<int> times(static_cast<std::size_t>(count));
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          for (const auto& batch : positions_of(
                   count, {.batch_size = batch_size, .rank = rank, .world_size = world_size})) {
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

// As `dataset::single_sampler` without drop_last, which is compared with Megatron's.
TEST(MicroBatchSequence, LeavesNothingOutWhereItIsToldSo) {
  for (std::int64_t count = 1; count <= 30; ++count) {
    for (const std::int64_t ranks : {1, 2, 3, 4}) {
      for (const std::int64_t rows : {1, 2, 3}) {
        const std::int64_t consumed = count / 3 / (ranks * rows) * (ranks * rows);
        SCOPED_TRACE(testing::Message() << count << " samples, " << ranks << " ranks, " << rows
                                        << " rows, " << consumed << " consumed");
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const loader_options options = {.batch_size = rows,
                                          .rank = rank,
                                          .world_size = ranks,
                                          .consumed_samples = consumed,
                                          .drop_last = false};
          const dataset::single_sampler sampler(count, consumed, {rows, ranks, rank}, false);
          micro_batch_sequence sequence(count, check(options), nullptr);
          ASSERT_EQ(sequence.count(), sampler.batches());
          batch_number n;
          std::vector<std::int64_t> positions;
          for (std::int64_t t = 0; sequence.next(n, positions); ++t) {
            const dataset::sample_run expected = sampler.batch(t);
            EXPECT_EQ(n.first_sample, expected.first);
            ASSERT_EQ(std::ssize(positions), expected.count);
            for (std::size_t i = 0; i < positions.size(); ++i) {
              EXPECT_EQ(positions[i], expected.first + static_cast<std::int64_t>(i));
            }
            EXPECT_EQ(n.consumed, std::min(count, consumed + (t + 1) * ranks * rows));
          }
          EXPECT_EQ(sequence.consumed_after(sequence.count()), count);
        }
      }
    }
  }
}

// Behind a last step that is short there is nothing to go on with, and nothing wrong.
TEST(MicroBatchSequence, EndsInTheMiddleOfAStep) {
  loader_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 8};
  options.drop_last = false;
  options.consumed_samples = 8;
  EXPECT_EQ(positions_of(14, options), (batches{{8, 9}, {12, 13}}));
  options.consumed_samples = 14;
  EXPECT_EQ(positions_of(14, options), batches());
  options.drop_last = true;
  EXPECT_THROW((void)positions_of(14, options), config_error);
}

TEST(MicroBatchSequence, CountsTheMicroBatchesThatAShortLastStepHas) {
  loader_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 8};
  const auto counts = [&](std::int64_t end) {
    micro_batch_sequence sequence(end, options, nullptr);
    std::vector<std::int64_t> all;
    batch_number n;
    std::vector<std::int64_t> positions;
    while (sequence.next(n, positions)) all.push_back(n.micro_batches);
    return all;
  };
  options.drop_last = false;
  EXPECT_THAT(counts(10), ElementsAre(2, 2, 1));
  EXPECT_THAT(counts(12), ElementsAre(2, 2, 1));
  EXPECT_THAT(counts(14), ElementsAre(2, 2, 2, 2));
  options.drop_last = true;  // training: a step that has not all of its batches is never done
  EXPECT_THAT(counts(12), ElementsAre(2, 2, 2));
}

TEST(MicroBatchSequence, OfOtherSamplersHasNoShortOnes) {
  for (const sampler_type type : {sampler_type::cyclic, sampler_type::full_validation}) {
    const loader_options options = {.sampler = type, .drop_last = false};
    EXPECT_THAT(test::config_refusal([&] { check(options); }), HasSubstr("drop_last is false"));
  }
}

TEST(MicroBatchSequence, NumbersStepsOfTheRunAndTheirMicroBatches) {
  loader_options options = {.batch_size = 2, .rank = 1, .world_size = 2, .global_batch_size = 12};
  options.consumed_samples = 20;  // two micro-batches into step 1
  micro_batch_sequence sequence(100, options, nullptr);
  batch_number n;
  std::vector<std::int64_t> positions;
  ASSERT_TRUE(sequence.next(n, positions));
  EXPECT_EQ(n, (batch_number{1, 2, 3, 22, 24}));
  EXPECT_THAT(positions, ElementsAre(22, 23));
  ASSERT_TRUE(sequence.next(n, positions));
  EXPECT_EQ(n, (batch_number{2, 0, 3, 26, 28}));
  EXPECT_EQ(sequence.count(), 20);
  EXPECT_EQ(sequence.consumed_after(3), 32);
}

// The samples are those of a constant batch; only steps have other sizes.
TEST(MicroBatchSequence, RampsUpStepsAndMovesNoSample) {
  loader_options options = {.batch_size = 2, .world_size = 2, .global_batch_size = 16};
  const batches plain = positions_of(200, options);
  options.rampup = dataset::rampup_batch{4, 4, 30};
  EXPECT_EQ(positions_of(200, options), plain);
  micro_batch_sequence sequence(200, options, nullptr);
  std::vector<std::int64_t> sizes;  // micro-batches of steps, as they come
  batch_number n;
  std::vector<std::int64_t> positions;
  while (sequence.next(n, positions)) {
    if (n.micro_batch == 0) sizes.push_back(0);
    EXPECT_EQ(n.step, static_cast<std::int64_t>(sizes.size()) - 1);
    EXPECT_EQ(n.micro_batch, sizes.back()++);
    EXPECT_LT(n.micro_batch, n.micro_batches);
  }
  sizes.resize(8);
  // 30 samples over 3 increments: 4 until 10 are consumed, 8 until 20, 12 until 30, then 16.
  EXPECT_THAT(sizes, ElementsAre(1, 1, 1, 2, 3, 4, 4, 4));
}

TEST(MicroBatchSequence, FollowsEdits) {
  const std::vector<dataset::edit> edits = {
      {.first = 2, .last = 6, .why = "spike"},
      {.kind = dataset::edit_kind::replay, .first = 0, .last = 1, .at = 8, .why = "again"}};
  const auto stream = std::make_shared<const dataset::edited_stream>(
      edits, [](std::int64_t step) { return step * 4; },
      [](const dataset::edit&) { return std::vector<dataset::position_range>(); });
  // Of 12 positions 4 are skipped and one comes twice.
  EXPECT_EQ(positions_of(12, {.batch_size = 3}, 1000, stream),
            (batches{{0, 1, 6}, {7, 0, 8}, {9, 10, 11}}));
  EXPECT_EQ(positions_of(12, {.batch_size = 3, .consumed_samples = 3}, 1000, stream),
            (batches{{7, 0, 8}, {9, 10, 11}}));
}

TEST(MicroBatchSequence, GoesThroughPassesOfCyclic) {
  for (const bool sharded : {true, false}) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      loader_options options = {.batch_size = 2, .rank = rank, .world_size = 2};
      options.sampler = sampler_type::cyclic;
      options.data_sharding = sharded;
      batches expected;
      dataset::cyclic_sampler pass(23, 0, {2, 2, rank}, sharded);
      while (expected.size() < 17) {
        for (std::int64_t t = 0; t < pass.batches(); ++t) expected.push_back(pass.batch(t));
        pass = pass.next_pass();
      }
      expected.resize(17);
      EXPECT_EQ(positions_of(23, options, 17), expected);
      options.consumed_samples = 12;  // three batches, all in the first pass
      expected.erase(expected.begin(), expected.begin() + 3);
      EXPECT_EQ(positions_of(23, options, 14), expected);
    }
  }
}

TEST(MicroBatchSequence, ValidatesInFullAndStartsAgainOnRanksThatHaveLess) {
  loader_options options = {.world_size = 3, .sampler = sampler_type::full_validation};
  EXPECT_EQ(positions_of(7, options), (batches{{0}, {3}, {6}}));
  options.rank = 2;
  EXPECT_EQ(positions_of(7, options), (batches{{2}, {5}, {2}}));
  options.consumed_samples = 3;
  EXPECT_EQ(positions_of(7, options), (batches{{5}, {2}}));
  options.consumed_samples = 9;  // the end: more than there are, as two ranks started again
  EXPECT_EQ(positions_of(7, options), batches());
  options.consumed_samples = 12;
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(7, options); }),
              HasSubstr("consumed_samples is 12, expected at most 9, the samples of the full"));
}

TEST(MicroBatchSequence, RefusesAPartOfAStepThatOtherRanksHaveBegun) {
  loader_options options = {.world_size = 2, .global_batch_size = 6};
  options.consumed_samples = 9;  // step 1 was begun by 3 ranks
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(60, options); }),
              HasSubstr("consumed_samples is 9, which is 3 samples into step 1, expected a "
                        "multiple of 2 of them"));
  options.consumed_samples = 8;
  EXPECT_EQ(positions_of(60, options).size(), 26);
  options.consumed_samples = 9;
  options.global_batch_size = 0;  // no steps are spoken of
  EXPECT_EQ(positions_of(60, options).front(), std::vector<std::int64_t>{9});
  options.batch_size = 2;
  options.global_batch_size = 16;
  options.rampup = dataset::rampup_batch{4, 4, 30};  // steps begin at 0, 4, 8, 12, 20
  options.consumed_samples = 18;
  EXPECT_THAT(test::config_refusal([&] { (void)positions_of(60, options); }),
              HasSubstr("6 samples into step 3, expected a multiple of 4"));
}

TEST(MicroBatchSequence, HasNoEndWhereTheRunHasNone) {
  constexpr std::int64_t unbounded = micro_batch_sequence::unbounded;
  EXPECT_EQ(micro_batch_sequence(unbounded, {.batch_size = 8}, nullptr).count(), unbounded);
  EXPECT_EQ(micro_batch_sequence(unbounded,
                                 {.batch_size = 8, .consumed_samples = 80, .global_batch_size = 8},
                                 std::make_shared<const dataset::edited_stream>())
                .count(),
            unbounded);
  EXPECT_EQ(micro_batch_sequence(800, {.batch_size = 8}, nullptr).count(), 100);
}

TEST(MicroBatchSequence, HasNothingLeftAtTheEnd) {
  EXPECT_TRUE(positions_of(0, {}).empty());
  EXPECT_TRUE(positions_of(20, {.consumed_samples = 20}).empty());
  EXPECT_TRUE(positions_of(20, {.batch_size = 21}).empty());
}

std::string refusal(std::int64_t end, const loader_options& options) {
  return test::config_refusal([&] { micro_batch_sequence(end, options, nullptr); });
}

TEST(MicroBatchSequence, RefusesWhereItCannotBe) {
  EXPECT_THAT(refusal(20, {.consumed_samples = 21}),
              HasSubstr("consumed_samples is 21, expected at most 20"));
  EXPECT_THAT(refusal(micro_batch_sequence::unbounded, {.sampler = sampler_type::cyclic}),
              HasSubstr("needs a run with an end"));
  EXPECT_THAT(refusal(2, {.rank = 2, .world_size = 3, .sampler = sampler_type::full_validation}),
              HasSubstr("rank 2 has none of the 2 samples"));
  EXPECT_THAT(
      refusal(9,
              {.world_size = 3, .consumed_samples = 4, .sampler = sampler_type::full_validation}),
      HasSubstr("consumed_samples is 4, expected a multiple of the 3 ranks"));
}

// The largest numbers that are let in must not wrap; the undefined-behaviour sanitizer watches.
TEST(MicroBatchSequence, HoldsAtTheEndsOfItsRanges) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t int32 = std::numeric_limits<std::int32_t>::max();
  const micro_batch_sequence large(
      most - 1,
      {.batch_size = int32, .rank = int32 - 1, .world_size = int32, .consumed_samples = 5},
      nullptr);
  EXPECT_EQ(large.count(), 2);
  EXPECT_EQ(large.consumed_after(2), 5 + 2 * int32 * int32);
  micro_batch_sequence late(most - 1, {.world_size = 2, .consumed_samples = most - 3}, nullptr);
  EXPECT_EQ(late.count(), 1);
  batch_number n;
  std::vector<std::int64_t> positions;
  ASSERT_TRUE(late.next(n, positions));
  EXPECT_EQ(n.consumed, most - 1);
}

}  // namespace
}  // namespace millrace::loader
