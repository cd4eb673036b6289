// SPDX-License-Identifier: Apache-2.0
//
// Tests that in Megatron's order, the loader serves the samples of megatron-core.
#include <millrace/loader/batch_loader.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/megatron_run.hpp>

#include "golden/dataset/megatron_golden.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using tokens = std::vector<std::int64_t>;

namespace dom = simdjson::dom;

/// Compares row 0 of the batch with a sample. The keys of `expected` are Megatron's field names.
void expect_sample(const batch& batch, dom::element expected, const std::string& which) {
  SCOPED_TRACE(which);
  EXPECT_EQ(tokens(batch.tokens().begin(), batch.tokens().end()),
            test::numbers(expected["tokens"]));
  EXPECT_EQ(tokens(batch.labels().begin(), batch.labels().end()),
            test::numbers(expected["labels"]));
  EXPECT_EQ(tokens(batch.position_ids().begin(), batch.position_ids().end()),
            test::numbers(expected["position_ids"]));
  tokens mask;
  for (const dom::element value : expected["loss_mask"].get_array()) {
    mask.push_back(static_cast<std::int64_t>(value.get_double().value()));
  }
  EXPECT_EQ(tokens(batch.loss_mask().begin(), batch.loss_mask().end()), mask);
}

loader_options megatron_options() {
  loader_options options;
  options.fields = {true, true, true, true, true};
  options.field_rules = {
      .reset_position_ids = true, .reset_attention_mask = true, .eod_mask_loss = true, .eod = 999};
  return options;
}

// Tests a whole run of Megatron. The loader builds the order itself, and must serve the samples of
// GPTDataset, including a partial last sample.
TEST(LoaderOfMegatronsRuns, ServesTheSamplesThatMegatronServed) {
  if (test::shared_folder().empty()) GTEST_SKIP() << test::no_shared_folder;
  const test::megatron_golden golden;
  const test::temp_folder folder;
  test::megatron_golden::write_corpora(folder.path());
  int samples = 0;
  for (const dom::element config : golden["gpt"].get_array()) {
    const auto split = std::string(std::string_view(config["split"]));
    for (const dataset::split_part part : dataset::split_parts) {
      const auto name = std::string(dataset::name(part));
      dom::element expected;
      if (config["splits"][name].get(expected) != simdjson::SUCCESS) continue;
      if (expected.is_null() || expected["len"].get_int64().value() == 0) continue;
      SCOPED_TRACE(std::string(std::string_view(config["name"])) + ' ' + name);
      dataset::gpt_request request{
          .sequence_length = config["S"].get_int64(),
          .part = part,
          .random_seed = static_cast<std::uint32_t>(config["seed"].get_int64().value())};
      bool flag = true;
      if (!config["extra"].get(flag)) request.add_extra_token = flag;
      if (!config["drop"].get(flag)) request.drop_last_partial_validation_sequence = flag;
      dataset::part_plan plan;
      std::optional<std::int64_t> size;
      const dom::element asked = config["sizes"].at(static_cast<std::size_t>(part));
      if (!asked.is_null()) size = asked.get_int64().value();
      plan.datasets = {{(folder / "corpus").string(), size}};
      const auto run = dataset::megatron_run::build(plan, request, split);
      ASSERT_EQ(run.end(), expected["len"].get_int64().value());
      batch_loader loader(run, megatron_options());
      expect_sample(*loader.next(), expected["sample0"], "sample0");
      loader_options last = megatron_options();
      last.consumed_samples = run.end() - 1;
      batch_loader at_end(run, last);
      expect_sample(*at_end.next(), expected["last"], "last");
      samples += 2;
    }
  }
  EXPECT_GE(samples, 20);
}

}  // namespace
}  // namespace millrace::loader
