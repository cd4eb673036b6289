// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_plan.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "support/paths.hpp"
#include "support/plain_blend.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr auto all = std::nullopt;

data_blends split_blend(blend_list list, const std::string& split = "80,15,5") {
  return {.blend = std::move(list), .split = split, .per_part = {}};
}

part_plan only(const data_plan& plans, split_part part) {
  return plans.at(static_cast<std::size_t>(part)).value();
}

TEST(BlendPlan, LeavesASinglePrefixAlone) {
  const data_plan plans = plan_data(split_blend({{"a"}, {}}, "80,20,0"), {100, 10, 5});
  EXPECT_FALSE(only(plans, split_part::train).blended);
  EXPECT_THAT(only(plans, split_part::train).datasets, ElementsAre(planned_dataset{"a", 100}));
  EXPECT_THAT(only(plans, split_part::valid).datasets, ElementsAre(planned_dataset{"a", 10}));
  EXPECT_FALSE(plans[2].has_value());  // no weight for this part
}

// Megatron is inconsistent here: it makes a blend of a single weighted prefix only if the data is
// split.
TEST(BlendPlan, BlendsASingleWeightedPrefixWhereTheDataIsSplit) {
  const part_plan split =
      only(plan_data(split_blend({{"a"}, {3.0}}), {100, 10, 5}), split_part::train);
  EXPECT_TRUE(split.blended);
  EXPECT_THAT(split.datasets, ElementsAre(planned_dataset{"a", 101}));
  EXPECT_EQ(split.size, 100);
  data_blends per_part;
  per_part.per_part[0] = blend_list{{"a"}, {3.0}};
  const part_plan apart = only(plan_data(per_part, {100, 10, 5}), split_part::train);
  EXPECT_FALSE(apart.blended);
  EXPECT_THAT(apart.datasets, ElementsAre(planned_dataset{"a", 100}));
}

TEST(BlendPlan, RoundsUpTwiceWithWeights) {
  const data_plan plans = plan_data(split_blend({{"a", "b"}, {30.0, 70.0}}), {40, 6, 4});
  const part_plan train = only(plans, split_part::train);
  EXPECT_THAT(train.datasets, ElementsAre(planned_dataset{"a", 13}, planned_dataset{"b", 29}));
  EXPECT_EQ(train.size, 40);
  const part_plan valid = only(plans, split_part::valid);
  EXPECT_THAT(valid.datasets, ElementsAre(planned_dataset{"a", 3}, planned_dataset{"b", 6}));
  EXPECT_EQ(valid.size, 7);  // more than requested
}

TEST(BlendPlan, TakesTheSurplusThatIsGiven) {
  data_blends blends = split_blend({{"a", "b"}, {0.5, 0.5}});
  for (const auto& [surplus, built] : {std::pair{0.0, 500}, {0.005, 503}, {0.5, 750}}) {
    blends.surplus = surplus;
    EXPECT_EQ(only(plan_data(blends, {1000, 0, 0}), split_part::train).datasets[0].num_samples,
              built);
  }
  EXPECT_EQ(only(plan_data(blends, {1000, 0, 0}), split_part::valid).size, 0);
}

TEST(BlendPlan, BuildsOneEpochWithoutWeights) {
  const data_plan plans = plan_data(split_blend({{"a", "b"}, {}}), {1000, all, 5});
  const part_plan train = only(plans, split_part::train);
  EXPECT_TRUE(train.blended);
  EXPECT_THAT(train.datasets, ElementsAre(planned_dataset{"a", all}, planned_dataset{"b", all}));
  EXPECT_EQ(train.size, 1000);
  EXPECT_EQ(only(plans, split_part::valid).size, all);
}

TEST(BlendPlan, ServesAllOfValidationWhereThatIsAsked) {
  data_blends blends = split_blend({{"a", "b"}, {}});
  blends.full_validation = true;
  const data_plan plans = plan_data(blends, {1000, 10, 5});
  EXPECT_EQ(only(plans, split_part::train).size, 1000);
  EXPECT_EQ(only(plans, split_part::valid).size, all);
}

TEST(BlendPlan, KeepsValidationSetsApart) {
  data_blends blends;
  blends.per_part[0] = blend_list{{"a", "b"}, {1.0, 2.0}};
  blends.per_part[1] = blend_list{{"c", "d"}, {}};
  blends.multiple_validation_sets = true;
  const part_plan valid = only(plan_data(blends, {30, 8, 5}), split_part::valid);
  EXPECT_FALSE(valid.blended);
  EXPECT_THAT(valid.datasets, ElementsAre(planned_dataset{"c", 8}, planned_dataset{"d", 8}));
  EXPECT_TRUE(only(plan_data(blends, {30, 8, 5}), split_part::train).blended);
  EXPECT_FALSE(plan_data(blends, {30, 8, 5})[2].has_value());
  blends.full_validation = true;
  EXPECT_EQ(only(plan_data(blends, {30, 8, 5}), split_part::valid).datasets[1].num_samples, all);
}

TEST(BlendPlan, RefusesWhatCannotBeBuilt) {
  const auto plan = [](blend_list list, part_sizes sizes) {
    return [=] { return plan_data(split_blend(list), sizes); };
  };
  const auto says = [](const char* text) { return ThrowsMessage<config_error>(HasSubstr(text)); };
  const blend_list weighted{{"a", "b"}, {1.0, 2.0}};
  EXPECT_THAT(plan(weighted, {all, 1, 1}),
              says("the train part has weights, but no number of samples: give --train-samples N "
                   "(0 for none), or leave out the weights"));
  EXPECT_THAT(
      [&] {
        data_blends blends = split_blend(weighted);
        blends.full_validation = true;
        return plan_data(blends, {1, 1, 1});
      },
      says("the valid part has weights, but no number of samples: leave out the weights, or "
           "--full-validation"));
  EXPECT_THAT(plan(weighted, {1, 1, all}), says("the test part has weights"));
  EXPECT_THAT(plan(weighted, {1, -1, 1}), says("the valid part requests -1 samples"));
  EXPECT_THAT(plan(weighted, {std::int64_t{1} << 53, 1, 1}), says("expected less than 2^53"));
  EXPECT_THAT(plan({{"a", "b"}, {1e-320, 1e300}}, {1, 1, 1}),
              says("the weight of 'a' is 1e-320, 0.0 of all weights"));
  EXPECT_THAT(plan({{"a", "b"}, {1e308, 1e308}}, {1, 1, 1}), says("closer to each other"));
  data_blends blends = split_blend(weighted);
  blends.surplus = 1e300;
  EXPECT_THAT(
      [&] {
        return plan_data(blends, {9, 1, 1});
      },
      says("samples of one dataset, expected less"));
}

part_plan by_length(std::optional<std::int64_t> size) {
  return {.datasets = {{"a", all}, {"b", all}}, .blended = true, .weights = {}, .size = size};
}

TEST(BlendRecipe, WeighsByLength) {
  const std::array<std::int64_t, 2> lengths = {30, 17};
  const blend_recipe whole(by_length(all), lengths, split_part::train);
  EXPECT_TRUE(whole.exhaustive());
  EXPECT_EQ(whole.size(), 47);
  const blend_recipe some(by_length(25), lengths, split_part::train);
  EXPECT_FALSE(some.exhaustive());
  EXPECT_EQ(some.size(), 25);
  EXPECT_THAT(some.shares(), ElementsAre(30.0 / 47, 17.0 / 47));
  EXPECT_EQ(blend_recipe(by_length(1000), lengths, split_part::train).size(), 47);
  const std::array<std::int64_t, 2> none = {30, 0};
  EXPECT_THAT([&] { return blend_recipe(by_length(all), none, split_part::valid); },
              ThrowsMessage<config_error>(HasSubstr("'b' has no samples for valid")));
}

// Weights are normalized twice. For these weights, the second normalization changes the last bit of
// one weight. The text that is hashed shows this bit.
TEST(BlendRecipe, NormalisesWeightsASecondTime) {
  const std::vector<double> weights = {0.1, 0.2, 0.3, 0.15};
  std::vector<double> typed = weights;
  bool differs = false;
  for (int i = 1; i < 50 && !differs; ++i) {
    typed[0] = 0.1 * i;
    const std::vector<double> once = normalize(typed);
    part_plan plan{.datasets = {{"a", 9}, {"b", 9}, {"c", 9}, {"d", 9}},
                   .blended = true,
                   .weights = once,
                   .size = 9};
    const std::array<std::int64_t, 4> lengths = {9, 9, 9, 9};
    const blend_recipe recipe(plan, lengths, split_part::train);
    EXPECT_EQ(recipe.shares(), normalize(once));
    differs = recipe.shares() != once;
  }
  EXPECT_TRUE(differs);
}

TEST(BlendRecipe, RefusesToTakeMoreThanThereIs) {
  part_plan plan{
      .datasets = {{"a", 9}, {"b", 9}}, .blended = true, .weights = {0.5, 0.5}, .size = 10};
  const std::array<std::int64_t, 2> lengths = {9, 4};
  const blend_recipe recipe(plan, lengths, split_part::train);
  test::blend_columns columns(10);
  EXPECT_THAT([&] { recipe.fill(columns.span()); },
              ThrowsMessage<config_error>(HasSubstr(
                  "takes 5 samples of 'b', which has 4: raise --mid-level-dataset-surplus")));
}

class BlendCache : public testing::Test {
 protected:
  blend_cache cache() const {
    const std::array<std::int64_t, 2> lengths = {30, 17};
    return {folder_.path() / "new" / "cache",
            blend_recipe(by_length(all), lengths, split_part::test),
            {python_json::string("a"), python_json::string("b")},
            split_part::test};
  }
  test::temp_folder folder_;
};

TEST_F(BlendCache, IsBuiltOnce) {
  bool built = false;
  const blend_index first = cache().load_or_build(blend_rounding::twice, &built);
  EXPECT_TRUE(built);
  const blend_index second = cache().load_or_build(blend_rounding::twice, &built);
  EXPECT_FALSE(built);
  ASSERT_EQ(first.size(), 47);
  test::blend_columns expected(47);
  fill_exhaustive_blend(std::array<std::int64_t, 2>{30, 17}, expected.span());
  for (std::int64_t i = 0; i < 47; ++i) {
    EXPECT_EQ(first[i], second[i]);
    EXPECT_EQ(first[i].dataset,
              static_cast<std::size_t>(expected.dataset_index[static_cast<std::size_t>(i)]));
    EXPECT_EQ(first[i].sample, expected.dataset_sample_index[static_cast<std::size_t>(i)]);
  }
}

TEST_F(BlendCache, IsBuiltAgainWhereItIsDamaged) {
  (void)cache().load_or_build();
  for (const auto& path :
       {cache().dataset_path(), cache().sample_path(), cache().description_path()}) {
    const std::string whole = test::read_text(path);
    for (const std::string& broken :
         {whole.substr(0, whole.size() - 1), whole + "x", std::string()}) {
      test::write_text(path, broken);
      std::string why;
      EXPECT_FALSE(cache().load(&why).has_value());
      EXPECT_THAT(why, HasSubstr(path.string()));
      bool built = false;
      (void)cache().load_or_build(blend_rounding::twice, &built);
      EXPECT_TRUE(built);
      EXPECT_EQ(test::read_text(path), whole);
    }
    std::filesystem::remove(path);
    EXPECT_FALSE(cache().load().has_value());
    (void)cache().load_or_build();
  }
}

// Partial files next to a complete cache are removed. A process leaves such files if it is killed
// between its renames while it replaces an old cache.
TEST_F(BlendCache, RemovesStalePartialFilesOfAWholeCache) {
  (void)cache().load_or_build();
  const auto paths = {cache().description_path(), cache().dataset_path(), cache().sample_path()};
  for (const auto& path : paths) test::write_text(path.string() + ".partial", "stale");
  bool built = true;
  (void)cache().load_or_build(blend_rounding::twice, &built);
  EXPECT_FALSE(built);
  for (const auto& path : paths) {
    EXPECT_FALSE(std::filesystem::exists(path.string() + ".partial"));
  }
}

TEST_F(BlendCache, NamesTheByteOfAnEntryThatIsNone) {
  (void)cache().load_or_build();
  std::string bytes = test::read_text(cache().dataset_path());
  bytes[128 + 2 * 3] = 2;
  test::write_text(cache().dataset_path(), bytes);
  bytes = test::read_text(cache().sample_path());
  bytes[128 + 8 * 4 + 7] = '\x80';
  test::write_text(cache().sample_path(), bytes);
  const blend_index index = cache().load().value();
  EXPECT_THAT([&] { return index[3]; },
              ThrowsMessage<format_error>(
                  HasSubstr("entry 3 is dataset 2, expected 0 to 1 (at byte 134)")));
  EXPECT_THAT([&] { return index[4]; },
              ThrowsMessage<format_error>(
                  testing::AllOf(HasSubstr("entry 4 is sample -"), HasSubstr("(at byte 160)"))));
}

}  // namespace
}  // namespace millrace::dataset
