// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/simulate/utilisation.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::loader {
namespace {

TEST(AcceleratorUtilisation, IsComputeOverTime) {
  EXPECT_DOUBLE_EQ(accelerator_utilisation(90, 100), 0.9);
  EXPECT_DOUBLE_EQ(accelerator_utilisation(0, 0), 1);
}

TEST(PipelineModel, IsBoundByItsSlowestPart) {
  const pipeline_model one{.make_s = 0.02, .threads = 1, .slots = 4};
  EXPECT_DOUBLE_EQ(one.utilisation(0.01), 0.5);
  EXPECT_DOUBLE_EQ(one.utilisation(0.04), 1);
  EXPECT_DOUBLE_EQ(one.break_even(), 0.018);
  const pipeline_model two{.make_s = 0.02, .threads = 2, .slots = 4};
  EXPECT_DOUBLE_EQ(two.utilisation(0.005), 0.5);
  const pipeline_model told{.make_s = 0.02, .announced = 3};
  EXPECT_DOUBLE_EQ(told.period(0), 0.005);
  // With a single slot, nothing can overlap.
  const pipeline_model serial{.make_s = 0.02, .threads = 1, .slots = 1};
  EXPECT_DOUBLE_EQ(serial.period(0.01), 0.03);
  EXPECT_DOUBLE_EQ(serial.break_even(), 0.18);
}

TEST(PipelineModel, BreaksEvenWhereItSays) {
  std::mt19937_64 random(test::seed(1));
  for (int i = 0; i < 1000; ++i) {
    const pipeline_model model{.make_s = static_cast<double>(1 + random() % 100'000) * 1e-6,
                               .threads = static_cast<std::int64_t>(1 + random() % 4),
                               .slots = static_cast<std::int64_t>(1 + random() % 8)};
    const double even = model.break_even();
    EXPECT_NEAR(model.utilisation(even), 0.9, 1e-9);
    EXPECT_LT(model.utilisation(0.99 * even), 0.9);
    EXPECT_GT(model.utilisation(1.01 * even), 0.9);
  }
}

/// Simulates the model batch by batch: which thread and which slot each batch uses, and when the
/// caller takes it. Returns the period.
double played_period(const pipeline_model& model, double compute) {
  constexpr int batches = 4000;
  std::vector<double> thread_free(static_cast<std::size_t>(model.threads), 0);
  std::vector<double> freed(static_cast<std::size_t>(model.slots), 0);  // index: batch % slots
  std::vector<double> begun;
  double caller = 0;
  double half = 0;
  for (int m = 0; m < batches; ++m) {
    const auto thread = std::ranges::min_element(thread_free);
    auto& slot = freed[static_cast<std::size_t>(m) % freed.size()];
    const double begin = std::max(*thread, slot);
    begun.push_back(begin);
    double made = begin + model.make_s;
    if (model.announced > 0) {  // storage got the announcement this many batches earlier
      made = std::max(
          begin, begun[static_cast<std::size_t>(std::max<std::int64_t>(0, m - model.announced))] +
                     model.make_s);
    }
    *thread = made;
    caller = std::max(caller, made) + compute;
    slot = caller;
    if (m == batches / 2) half = caller;
  }
  const auto later = batches - 1 - batches / 2;
  return (caller - half) / static_cast<double>(later);
}

TEST(PipelineModel, IsWhatComesOutWhenItIsPlayed) {
  std::mt19937_64 random(test::seed(2));
  for (int i = 0; i < 300; ++i) {
    pipeline_model model{.make_s = static_cast<double>(1 + random() % 1000),
                         .threads = static_cast<std::int64_t>(1 + random() % 4),
                         .slots = static_cast<std::int64_t>(1 + random() % 8)};
    if (i % 3 == 0) {
      model.threads = 1;
      model.slots = static_cast<std::int64_t>(2 + random() % 8);
      model.announced = static_cast<std::int64_t>(1 + random() % 20);
    }
    const auto compute = static_cast<double>(random() % 1000);
    EXPECT_NEAR(played_period(model, compute) / model.period(compute), 1, 0.005)
        << model.make_s << " s, " << model.threads << " threads, " << model.slots << " slots, "
        << model.announced << " announced, " << compute << " s of compute";
  }
}

}  // namespace
}  // namespace millrace::loader
