// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/run/batch_steps.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

TEST(BatchSteps, AreConstantWithoutARampUp) {
  const batch_steps steps(24);
  EXPECT_EQ(steps.samples_of(7), 24);
  EXPECT_EQ(steps.first_position(7), 168);
  EXPECT_EQ(steps.step_of(167), 6);
  EXPECT_EQ(steps.step_of(168), 7);
  EXPECT_EQ(steps.done_at(168), 7);
  EXPECT_EQ(steps.done_at(169), 8);
}

// Batch sizes that `RampupBatchsizeNumMicroBatchesCalculator` of megatron-core 0.16.1 gives. It is
// updated before each step with the number of consumed samples. The micro-batch size and the number
// of ranks are 1.
struct ramp {
  std::int64_t global_batch;
  rampup_batch rampup;
  std::vector<std::int64_t> sizes;  // batch sizes of the first steps
};

class BatchRampup : public testing::TestWithParam<ramp> {};

TEST_P(BatchRampup, GivesMegatronsSteps) {
  const ramp& given = GetParam();
  const batch_steps steps(given.global_batch, given.rampup);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < given.sizes.size(); ++i) {
    const auto step = static_cast<std::int64_t>(i);
    EXPECT_EQ(steps.samples_of(step), given.sizes[i]) << "step " << i;
    EXPECT_EQ(steps.first_position(step), position) << "step " << i;
    for (std::int64_t k = 0; k < given.sizes[i]; ++k) EXPECT_EQ(steps.step_of(position + k), step);
    position += given.sizes[i];
  }
  EXPECT_EQ(steps.samples_of(1000000), given.global_batch);
}

INSTANTIATE_TEST_SUITE_P(
    Megatron, BatchRampup,
    testing::Values(
        ramp{32, {4, 4, 100}, {4, 4, 4, 4, 8, 8, 12, 16, 20, 24, 32, 32}},
        ramp{8, {2, 2, 1}, {2, 8, 8}},
        ramp{48, {16, 16, 1000}, {16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
                                  16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
                                  16, 16, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32}},
        ramp{10, {1, 3, 7}, {1, 1, 1, 4, 10, 10}}, ramp{96, {32, 32, 97}, {32, 32, 64, 96, 96}},
        ramp{7, {1, 1, 50}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 7}},
        ramp{64, {8, 8, 333}, {8, 8, 8, 8, 8, 8, 16, 16, 16, 24, 24, 32, 32, 40, 48, 56, 64, 64}}));

// If a step is after the end of any run, its first position is the largest 64-bit integer. It must
// not wrap to a small number.
TEST(BatchSteps, DoNotWrap) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t batch = std::int64_t{1} << 24;
  const std::int64_t step = std::int64_t{1} << 40;
  EXPECT_EQ(batch_steps(batch).first_position(step), most);
  EXPECT_EQ(batch_steps(batch).first_position(step / 4), std::int64_t{1} << 62);
  EXPECT_EQ(batch_steps(batch, rampup_batch{batch / 2, batch / 2, 1}).first_position(step), most);
}

// Compares every step of a long ramp-up with Megatron's rule, applied step by step.
TEST(BatchRampup, IsTheRuleWhateverTheNumbers) {
  for (std::int64_t start = 1; start <= 6; ++start) {
    for (std::int64_t increment = 1; increment <= 5; ++increment) {
      for (std::int64_t samples = 1; samples <= 300; samples += 13) {
        for (std::int64_t increments = 1; increments <= 7; ++increments) {
          const std::int64_t global = start + increments * increment;
          const batch_steps steps(global, rampup_batch{start, increment, samples});
          std::int64_t consumed = 0;
          for (std::int64_t step = 0; step < 120; ++step) {
            std::int64_t size = global;
            if (consumed <= samples) {
              const double each = static_cast<double>(samples) / static_cast<double>(increments);
              size = start +
                     static_cast<std::int64_t>(static_cast<double>(consumed) / each) * increment;
              if (size > global) size = global;
            }
            ASSERT_EQ(steps.samples_of(step), size)
                << start << ' ' << increment << ' ' << samples << " to " << global << ", " << step;
            ASSERT_EQ(steps.first_position(step), consumed);
            consumed += size;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
