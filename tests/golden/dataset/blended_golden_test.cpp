// SPDX-License-Identifier: Apache-2.0
//
// Compares whole blends with Megatron's blends in the entry `blended` of megatron_golden.json.
// Covers all steps from the arguments of --data-path to the cache files and the tokens of the first
// samples.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/gpt_index.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "golden/dataset/megatron_golden.hpp"

namespace millrace::dataset {
namespace {

namespace dom = simdjson::dom;

std::optional<std::int64_t> number_or_null(dom::element element) {
  if (element.is_null()) return std::nullopt;
  return std::int64_t{element};
}

/// Returns the blend as command-line arguments.
std::vector<std::string> words_of(dom::element blend) {
  std::vector<std::string> words;
  for (std::size_t d = 0; d < dom::array(blend.at(0)).size(); ++d) {
    if (!blend.at(1).is_null()) words.push_back(simdjson::to_string(blend.at(1).at(d)));
    words.emplace_back(std::string_view(blend.at(0).at(d)));
  }
  return words;
}

struct built {
  std::vector<std::int64_t> lengths;
  std::vector<python_json> identifiers;
};

built build(const part_plan& plan, split_part part, const data_blends& blends,
            const std::filesystem::path& folder, dom::element tokenizer) {
  built out;
  for (const planned_dataset& each : plan.datasets) {
    const indexed_dataset data(folder / each.prefix);
    const sequence_range range = split_matrix(*blends.split).of(part, data.sequence_count());
    const gpt_plan sizes = plan_gpt_index(
        {.sequence_length = 8, .num_samples = each.num_samples, .part = part}, range,
        count_tokens(data.index().lengths, range, data.index().lengths_offset()), each.prefix);
    out.lengths.push_back(sizes.samples);
    const gpt_description description{each.prefix,
                                      each.num_samples,
                                      part,
                                      1234,
                                      8,
                                      blends.split,
                                      read_python_json(simdjson::minify(tokenizer))};
    out.identifiers.push_back(description.identifiers());
  }
  return out;
}

std::vector<double> reals(dom::element array) {
  std::vector<double> out;
  for (const dom::element each : dom::array(array)) out.push_back(double(each));
  return out;
}

/// Builds the run that a loader would serve. Compares the first three samples of the run with
/// `first`.
void expect_first_samples(const part_plan& plan, split_part part, const std::string& split,
                          dom::element first) {
  const auto run = megatron_run::build(plan, {.sequence_length = 8, .part = part}, split);
  std::int64_t position = 0;
  for (const dom::element tokens : dom::array(first)) {
    const source_sample sample = run.at(position++);
    std::vector<piece> pieces;
    EXPECT_EQ(run.pieces(sample, pieces), 0);
    std::vector<std::uint16_t> text(9);
    const indexed_dataset data(run.prefix(sample.source));
    EXPECT_EQ(gather<std::uint16_t>(data, pieces, text), 9);
    EXPECT_EQ((std::vector<std::int64_t>(text.begin(), text.end() - 1)), test::numbers(tokens));
  }
  EXPECT_EQ(position, 3);
}

TEST(MegatronsBlendedDatasets, AreRebuilt) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  test::megatron_golden::write_corpora(folder.path());
  const test::inside here(folder.path());
  int seen = 0;
  for (const dom::element each : dom::array(golden["blended"])) {
    data_flags flags;
    ASSERT_TRUE(set_data_flag(flags, "--data-path", words_of(each["blend"])));
    ASSERT_TRUE(set_data_flag(flags, "--split", std::vector{std::string(each["split"])}));
    const data_blends blends = resolve_data_flags(flags);
    part_sizes sizes;
    for (std::size_t p = 0; p < 3; ++p) sizes[p] = number_or_null(each["req"].at(p));
    const data_plan plans = plan_data(blends, sizes);
    for (const split_part part : split_parts) {
      const auto& plan = plans[static_cast<std::size_t>(part)];
      dom::element expected;
      const bool found =
          each["splits"][std::string(name(part))].get(expected) == simdjson::SUCCESS &&
          !expected.is_null();
      ASSERT_EQ(plan.has_value(), found);
      if (!found) continue;
      SCOPED_TRACE(simdjson::to_string(each["blend"]) + ' ' + std::string(name(part)));
      ++seen;

      ASSERT_TRUE(plan->blended);
      for (std::size_t d = 0; d < plan->datasets.size(); ++d) {
        EXPECT_EQ(plan->datasets[d].num_samples, number_or_null(expected["mid_num_samples"].at(d)));
      }
      dom::parser parser;
      const std::string_view description(expected["description"]);
      const dom::element parsed = parser.parse(simdjson::padded_string(description));
      const built datasets =
          build(*plan, part, blends, folder.path(), parsed["datasets"].at(0)["tokenizer"]);
      EXPECT_EQ(datasets.lengths, test::numbers(expected["mid_len"]));

      const blend_recipe recipe(*plan, datasets.lengths, part);
      EXPECT_EQ(recipe.size(), std::int64_t{expected["len"]});
      EXPECT_EQ(recipe.exhaustive(), expected["size"].is_null());
      if (!recipe.exhaustive()) {
        EXPECT_EQ(recipe.size(), std::int64_t{expected["size"]});
        EXPECT_EQ(recipe.shares(), reals(expected["weights"]));
      } else {
        EXPECT_EQ((std::vector(recipe.lengths().begin(), recipe.lengths().end())),
                  test::numbers(expected["weights"]));
      }
      expect_first_samples(*plan, part, *blends.split, expected["first3"]);
      const auto caches = folder / ("cache" + std::to_string(seen));
      const blend_cache cache(caches, recipe, datasets.identifiers, part);
      EXPECT_EQ(cache.text(), description);
      const auto md5 = std::string(std::string_view(expected["md5"]));
      EXPECT_EQ(cache.dataset_path(), caches / (md5 + "-BlendedDataset-" + std::string(name(part)) +
                                                "-dataset_index.npy"));
      bool is_new = false;
      (void)cache.load_or_build(blend_rounding::twice, &is_new);
      EXPECT_TRUE(is_new);
      const blend_index index = cache.load_or_build(blend_rounding::twice, &is_new);
      EXPECT_FALSE(is_new);
      std::vector<std::int64_t> dataset_index;
      std::vector<std::int64_t> sample_index;
      for (std::int64_t i = 0; i < index.size(); ++i) {
        dataset_index.push_back(static_cast<std::int64_t>(index[i].dataset));
        sample_index.push_back(index[i].sample);
      }
      EXPECT_EQ(dataset_index, test::numbers(expected["dataset_index"]));
      EXPECT_EQ(sample_index, test::numbers(expected["dataset_sample_index"]));
    }
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace millrace::dataset
