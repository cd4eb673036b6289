// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/sampler.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

using testing::HasSubstr;

using micro_batches = std::vector<std::vector<std::int64_t>>;

micro_batches samples_of(std::int64_t sample_count, const loader_options& options) {
  const sampler s(sample_count, options);
  micro_batches all;
  for (std::int64_t m = 0; m < s.micro_batches(); ++m) {
    all.emplace_back(static_cast<std::size_t>(options.batch_size));
    std::iota(all.back().begin(), all.back().end(), s.first_sample(m));
  }
  return all;
}

// What Megatron-LM's own MegatronPretrainingSampler yielded (development branch of 2026-08-22,
// data_samplers.py, drop_last=True): 20 samples, micro-batches of 2, 3 ranks.
TEST(Sampler, GivesWhatMegatronsDoes) {
  struct run {
    std::int64_t consumed;
    std::vector<micro_batches> ranks;
  };
  const std::vector<run> runs = {
      {0, {{{0, 1}, {6, 7}, {12, 13}}, {{2, 3}, {8, 9}, {14, 15}}, {{4, 5}, {10, 11}, {16, 17}}}},
      {6, {{{6, 7}, {12, 13}}, {{8, 9}, {14, 15}}, {{10, 11}, {16, 17}}}},
  };
  for (const run& expected : runs) {
    SCOPED_TRACE(testing::Message() << "consumed " << expected.consumed);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(samples_of(20, {.batch_size = 2,
                                .rank = rank,
                                .world_size = 3,
                                .consumed_samples = expected.consumed}),
                expected.ranks[static_cast<std::size_t>(rank)]);
    }
  }
}

TEST(Sampler, DealsEverySampleOnceAndDropsOnlyWhatFillsNoStep) {
  for (std::int64_t count = 0; count <= 40; ++count) {
    for (std::int64_t world_size = 1; world_size <= 4; ++world_size) {
      for (std::int64_t batch_size = 1; batch_size <= 4; ++batch_size) {
        SCOPED_TRACE(testing::Message()
                     << count << " samples, " << world_size << " ranks, " << batch_size << " rows");
        std::vector<int> times(static_cast<std::size_t>(count));
        for (std::int64_t rank = 0; rank < world_size; ++rank) {
          for (const auto& batch : samples_of(
                   count, {.batch_size = batch_size, .rank = rank, .world_size = world_size})) {
            for (const std::int64_t sample : batch) ++times.at(static_cast<std::size_t>(sample));
          }
        }
        const std::int64_t served = count - count % (world_size * batch_size);
        std::vector<int> once(static_cast<std::size_t>(count));
        std::fill_n(once.begin(), served, 1);
        EXPECT_EQ(times, once);
      }
    }
  }
}

TEST(Sampler, CountsWhatIsConsumedOverAllRanks) {
  const sampler s(100, {.batch_size = 4, .rank = 1, .world_size = 3, .consumed_samples = 7});
  EXPECT_EQ(s.samples_per_micro_batch(), 12);
  EXPECT_EQ(s.micro_batches(), 7);
  EXPECT_EQ(s.consumed_before(0), 7);
  EXPECT_EQ(s.consumed_before(7), 91);
  EXPECT_EQ(s.first_sample(6), 83);
}

TEST(Sampler, HasNothingLeftAtTheEnd) {
  EXPECT_EQ(sampler(0, {}).micro_batches(), 0);
  EXPECT_EQ(sampler(20, {.consumed_samples = 20}).micro_batches(), 0);
  EXPECT_EQ(sampler(20, {.batch_size = 21}).micro_batches(), 0);
}

TEST(Sampler, RefusesMoreConsumedThanThereIs) {
  try {
    sampler(20, {.consumed_samples = 21});
    FAIL() << "accepted";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("consumed_samples is 21, expected at most 20"));
  }
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(sampler(20, {.batch_size = 0}), config_error);
  EXPECT_THROW(sampler(20, {.rank = 2, .world_size = 2}), config_error);
}

// The largest numbers that are let in must not wrap; the undefined-behaviour sanitizer watches.
TEST(Sampler, HoldsAtTheEndsOfItsRanges) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t int32 = std::numeric_limits<std::int32_t>::max();

  const sampler large(
      most, {.batch_size = int32, .rank = int32 - 1, .world_size = int32, .consumed_samples = 5});
  EXPECT_EQ(large.samples_per_micro_batch(), int32 * int32);
  EXPECT_EQ(large.micro_batches(), 2);
  EXPECT_EQ(large.consumed_before(2), 5 + 2 * int32 * int32);
  EXPECT_EQ(large.first_sample(1), 5 + int32 * int32 + (int32 - 1) * int32);

  const sampler late(most, {.world_size = 2, .consumed_samples = most - 3});
  EXPECT_EQ(late.micro_batches(), 1);
  EXPECT_EQ(late.consumed_before(1), most - 1);

  const sampler done(most, {.world_size = int32, .consumed_samples = most});
  EXPECT_EQ(done.micro_batches(), 0);
  EXPECT_EQ(done.consumed_before(0), most);
}

}  // namespace
}  // namespace millrace::loader
