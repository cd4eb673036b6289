// SPDX-License-Identifier: Apache-2.0
//
// Tests runs in Megatron's order: how their state describes a blend, and how they compare a cached
// blend with a newly built one.
#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>
#include <millrace/dataset/detail/run/megatron_sources.hpp>
#include <millrace/dataset/state.hpp>

#include "support/config_refusal.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

class MegatronRun : public testing::Test {
 protected:
  MegatronRun() {
    for (const char* name : {"a", "b"}) {
      test::write_dataset<std::uint16_t>(folder_ / name, {{std::vector<std::uint16_t>(400, 1)},
                                                          {std::vector<std::uint16_t>(500, 2)}});
    }
  }

  part_plan plan_of(const std::string& first_weight) const {
    data_flags flags;
    std::vector<std::string> words = {first_weight, path("a"), "0.7", path("b")};
    if (first_weight.empty()) words = {path("a"), path("b")};
    (void)set_data_flag(flags, "--data-path", words);
    (void)set_data_flag(flags, "--split", std::vector<std::string>{"1,0,0"});
    return *plan_data(resolve_data_flags(flags), {100, 0, 0})[0];
  }
  megatron_run run(const part_plan& plan, bool cached, blend_rounding rounding) const {
    std::optional<megatron_caches> caches;
    if (cached) caches = {folder_ / "cache", python_json::object()};
    return megatron_run::build(plan, {.sequence_length = 8, .part = split_part::train}, "1,0,0", 1,
                               caches, rounding);
  }
  /// Does the same as `inspect_dataset prepare-cache`.
  blend_cache prepare(const part_plan& plan) const {
    const gpt_cache_options options{.folder = folder_ / "cache",
                                    .sequence_length = 8,
                                    .split = "1,0,0",
                                    .tokenizer = python_json::object()};
    std::vector<std::int64_t> lengths;
    std::vector<python_json> datasets;
    for (const planned_dataset& each : plan.datasets) {
      const auto kept =
          prepare_gpt_cache(options, each.prefix, split_part::train, each.num_samples);
      lengths.push_back(kept->plan.samples);
      datasets.push_back(kept->description.identifiers());
    }
    return {options.folder, blend_recipe(plan, lengths, split_part::train), datasets,
            split_part::train};
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  test::temp_folder folder_;
};

// The order of a single dataset differs with and without a weight: with a weight, the dataset has
// spare samples.
TEST_F(MegatronRun, SaysWhatDecidesABlend) {
  const run_state weighted = run(plan_of("0.3"), false, blend_rounding::twice).description();
  EXPECT_TRUE(weighted.weighted);
  EXPECT_EQ(weighted.blend_rounding, "twice");
  const run_state fused = run(plan_of("0.3"), false, blend_rounding::fused).description();
  EXPECT_EQ(fused.blend_rounding, "fused");
  const run_state by_length = run(plan_of(""), false, blend_rounding::twice).description();
  EXPECT_FALSE(by_length.weighted);
  EXPECT_THAT(test::config_refusal([&] { require_same(weighted, fused); }),
              HasSubstr("blend_rounding"));
  EXPECT_THAT(test::config_refusal([&] { require_same(weighted, by_length); }),
              HasSubstr("weighted"));
}

TEST_F(MegatronRun, RefusesAKeptBlendThatIsAnother) {
  const part_plan plan = plan_of("0.3");
  const blend_cache kept = prepare(plan);
  EXPECT_EQ(run(plan, true, blend_rounding::twice).end(), 100) << "no blend is kept";
  kept.build();
  EXPECT_EQ(run(plan, true, blend_rounding::twice).end(), 100);

  // Swaps sample 0 with the first sample of the other dataset, as another rounding might do.
  std::vector<std::byte> file = test::read_bytes(kept.dataset_path());
  const std::size_t header = file.size() - 100 * sizeof(std::int16_t);
  std::size_t other = header + 2;
  while (file[other] == file[header]) other += 2;
  std::swap(file[header], file[other]);
  test::write_bytes(kept.dataset_path(), file);
  EXPECT_THAT(test::config_refusal([&] { (void)run(plan, true, blend_rounding::twice); }),
              AllOf(HasSubstr(kept.dataset_path().string()),
                    HasSubstr("sample 0 differs if blends are"), HasSubstr("--blend-rounding")));

  test::write_bytes(kept.dataset_path(), std::vector<std::byte>(10));
  EXPECT_THAT(test::config_refusal([&] { (void)run(plan, true, blend_rounding::twice); }),
              HasSubstr("build it with inspect_dataset prepare-cache"));
}

}  // namespace
}  // namespace millrace::dataset
