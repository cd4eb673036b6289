// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/greedy_blend.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "support/plain_blend.hpp"
#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

using test::blend_columns;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

blend_columns plain(const std::vector<double>& weights, std::int64_t size, blend_rounding rounding,
                    const std::vector<std::int64_t>& limits = {}) {
  blend_columns columns(size);
  if (rounding == blend_rounding::twice) {
    test::fill_plain_blend(weights, limits, columns.span(), test::error_rounded_twice);
  } else {
    test::fill_plain_blend(weights, limits, columns.span(), test::error_rounded_once);
  }
  return columns;
}

/// Each kernel that this processor supports must give the same result as the plain loop.
void expect_plain(const std::vector<double>& weights, std::int64_t size,
                  const std::vector<std::int64_t>& limits = {}) {
  for (const auto rounding : {blend_rounding::twice, blend_rounding::fused}) {
    SCOPED_TRACE(rounding == blend_rounding::twice ? "rounded twice" : "fused");
    const blend_columns expected = plain(weights, size, rounding, limits);
    for (const auto kernel : {detail::greedy_kernel::plain, detail::greedy_kernel::avx512}) {
      if (!detail::is_there(kernel)) continue;
      blend_columns ours(size);
      detail::fill_blend_by(kernel, weights, limits, ours.span(), rounding);
      EXPECT_TRUE(ours == expected) << (kernel == detail::greedy_kernel::plain ? "plain" : "avx512")
                                    << ", " << weights.size() << " datasets";
    }
  }
}

std::vector<double> drawn(std::size_t count, const std::function<double(std::size_t)>& draw) {
  std::vector<double> weights(count);
  for (std::size_t d = 0; d < count; ++d) weights[d] = draw(d);
  return normalize(normalize(weights));
}

TEST(GreedyBlend, ServesWhoIsFurthestBehind) {
  blend_columns columns(10);
  fill_greedy_blend(std::vector{0.3, 0.7}, columns.span());
  EXPECT_THAT(columns.dataset_index, ElementsAre(1, 0, 1, 1, 0, 1, 1, 0, 1, 1));
  EXPECT_THAT(columns.dataset_sample_index, ElementsAre(0, 0, 1, 2, 1, 3, 4, 2, 5, 6));
}

TEST(GreedyBlend, GivesTiesToTheFirst) {
  blend_columns columns(8);
  fill_greedy_blend(std::vector{0.25, 0.25, 0.25, 0.25}, columns.span());
  EXPECT_THAT(columns.dataset_index, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  // Unequal weights can tie, too. With the first weights, weight * position - count is 0 for all
  // datasets at every fourth position.
  expect_plain({0.25, 0.5, 0.25}, 1000);
  expect_plain({0.125, 0.5, 0.125, 0.25}, 1000);
  expect_plain({0.0625, 0.125, 0.0625, 0.25, 0.5}, 1000);
}

TEST(GreedyBlend, IsEmptyForASizeOfNothing) {
  blend_columns columns(0);
  fill_greedy_blend(std::vector{1.0}, columns.span());
  EXPECT_TRUE(columns.dataset_index.empty());
}

// Every kernel gives the same blend as the plain loop. The numbers of datasets include the lane
// count of each kernel and this count plus one. The weights have many distributions.
TEST(GreedyBlend, EqualsThePlainLoop) {
  std::mt19937_64 random(test::seed(1));
  std::normal_distribution<double> normal(0.0, 1.0);
  for (const std::size_t count : {1U, 2U, 3U, 8U, 9U, 17U, 33U, 40U, 41U, 64U, 65U, 200U, 700U}) {
    SCOPED_TRACE(count);
    expect_plain(
        drawn(count, [&](std::size_t) { return static_cast<double>(random() % 1000 + 1); }), 3000);
    expect_plain(drawn(count, [&](std::size_t) { return std::exp(2.0 * normal(random)); }), 3000);
    expect_plain(drawn(count, [&](std::size_t) { return std::exp(9.0 * normal(random)); }), 3000);
    expect_plain(drawn(count, [&](std::size_t d) { return 1.0 / static_cast<double>(d + 1); }),
                 3000);
    expect_plain(drawn(count, [&](std::size_t) { return static_cast<double>(random() % 3 + 1); }),
                 3000);
    expect_plain(drawn(count, [](std::size_t) { return 1.0; }), 3000);
    // If the weights are almost equal, all datasets are nearly tied at every step.
    expect_plain(
        drawn(count, [&](std::size_t) { return 1.0 + 1e-15 * static_cast<double>(random() % 9); }),
        3000);
    expect_plain(
        drawn(count, [&](std::size_t d) { return d == 0 ? 1e6 : 1.0 + 1e-9 * normal(random); }),
        3000);
  }
}

// Every kernel gives the same blend as the plain loop even after many more steps. By then,
// positions are large, and more blocks of steps have ended early.
TEST(GreedyBlend, EqualsThePlainLoopFarOut) {
  std::mt19937_64 random(test::seed(2));
  std::normal_distribution<double> normal(0.0, 1.0);
  expect_plain(drawn(150, [&](std::size_t) { return std::exp(normal(random)); }), 200000);
  expect_plain(drawn(90, [&](std::size_t d) { return static_cast<double>(d % 30 + 1); }), 200000);
}

TEST(GreedyBlend, TakesWeightsThatUnderflowedToNothing) {
  std::vector<double> weights(70, 0.0);
  weights[3] = 1.0;
  expect_plain(weights, 500);
  weights.assign(70, 5e-324);
  expect_plain(weights, 500);
}

TEST(GreedyBlend, TakesAsManyDatasetsAsAnInt16CanTell) {
  std::vector<double> weights(most_blended_datasets);
  std::iota(weights.begin(), weights.end(), 1.0);
  weights = normalize(normalize(weights));
  blend_columns columns(300);
  fill_greedy_blend(weights, columns.span());
  EXPECT_TRUE(columns == plain(weights, 300, blend_rounding::twice));
}

// If the compiler contracts the product and the difference into one operation, most blends change.
TEST(GreedyBlend, DependsOnTheRounding) {
  std::mt19937_64 random(test::seed(3));
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    const auto weights = drawn(
        2 + random() % 11, [&](std::size_t) { return static_cast<double>(random() % 100 + 1); });
    blend_columns twice(2000);
    blend_columns fused(2000);
    fill_greedy_blend(weights, twice.span(), blend_rounding::twice);
    fill_greedy_blend(weights, fused.span(), blend_rounding::fused);
    differ += twice == fused ? 0 : 1;
  }
  EXPECT_GT(differ, 30) << "of 100";
}

TEST(GreedyBlend, RefusesWhatIsNoWeight) {
  blend_columns columns(4);
  const auto fill = [&](const std::vector<double>& weights) {
    return [&, weights] { fill_greedy_blend(weights, columns.span()); };
  };
  EXPECT_THAT(fill({}), ThrowsMessage<config_error>(HasSubstr("0 datasets, expected 1 to 32766")));
  EXPECT_THAT(fill(std::vector<double>(32767, 1.0 / 32767)),
              ThrowsMessage<config_error>(HasSubstr("32767 datasets")));
  EXPECT_THAT(fill({0.5, -0.5}), ThrowsMessage<config_error>(HasSubstr("dataset 1 is -0.5")));
  EXPECT_THAT(fill({1.5, 0.5}), ThrowsMessage<config_error>(HasSubstr("dataset 0 is 1.5")));
  EXPECT_THAT(fill({0.5, std::nan("")}), ThrowsMessage<config_error>(HasSubstr("dataset 1 is")));
}

TEST(ExhaustiveBlend, ServesEverySampleOnce) {
  blend_columns columns(10);
  fill_exhaustive_blend(std::vector<std::int64_t>{3, 5, 2}, columns.span());
  EXPECT_THAT(columns.dataset_index, ElementsAre(1, 0, 2, 1, 0, 1, 2, 1, 0, 1));
  EXPECT_THAT(columns.dataset_sample_index, ElementsAre(0, 0, 0, 1, 1, 2, 1, 3, 2, 4));
}

TEST(ExhaustiveBlend, EqualsThePlainLoop) {
  std::mt19937_64 random(test::seed(4));
  for (const std::size_t count : {1U, 2U, 5U, 8U, 40U, 41U, 64U, 65U, 130U}) {
    for (const std::int64_t most : {1, 2, 30, 90}) {
      std::vector<std::int64_t> sizes(count);
      for (auto& size : sizes) {
        size = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most));
      }
      if (random() % 2 == 0) sizes[random() % count] += 3000;
      const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
      std::vector<double> weights(count);
      for (std::size_t d = 0; d < count; ++d) {
        weights[d] = static_cast<double>(sizes[d]) / static_cast<double>(total);
      }
      SCOPED_TRACE(testing::Message() << count << " datasets of up to " << most);
      expect_plain(weights, total, sizes);
      blend_columns columns(total);
      fill_exhaustive_blend(sizes, columns.span());
      EXPECT_TRUE(columns == plain(weights, total, blend_rounding::twice, sizes));
    }
  }
}

TEST(ExhaustiveBlend, RefusesWhatDoesNotAddUp) {
  blend_columns columns(10);
  const auto fill = [&](const std::vector<std::int64_t>& sizes) {
    return [&, sizes] { fill_exhaustive_blend(sizes, columns.span()); };
  };
  EXPECT_THAT(fill({}), ThrowsMessage<config_error>(HasSubstr("0 datasets")));
  EXPECT_THAT(fill({10, 0}), ThrowsMessage<config_error>(HasSubstr("dataset 1 of a blend has 0")));
  EXPECT_THAT(fill({-3, 13}),
              ThrowsMessage<config_error>(HasSubstr("dataset 0 of a blend has -3")));
  EXPECT_THAT(fill({3, 8}), ThrowsMessage<config_error>(HasSubstr("more samples than")));
  EXPECT_THAT(fill({3, std::numeric_limits<std::int64_t>::max()}),
              ThrowsMessage<config_error>(HasSubstr("more samples than")));
  EXPECT_THAT(fill({3, 4}), ThrowsMessage<config_error>(HasSubstr("3 samples fewer")));
}

}  // namespace
}  // namespace millrace::dataset
