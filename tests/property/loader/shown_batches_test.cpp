// SPDX-License-Identifier: Apache-2.0
//
// Compares what `inspect_dataset show --step S --json` prints with the batches that the loaders of
// all ranks serve in that step: tokens, labels, loss mask, positions and document boundaries.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <simdjson.h>

#include <millrace/dataset/state.hpp>
#include <millrace/loader/batch_loader.hpp>

#include "support/draw_served_case.hpp"
#include "support/paths.hpp"
#include "support/run_program.hpp"
#include "support/seed.hpp"
#include "support/served_case.hpp"
#include "unit/dataset/odd_mask.hpp"

namespace millrace::loader {
namespace {

using test::case_batch;
using test::case_order;
using test::case_row;
using test::served_case;
using flag_words = std::vector<std::string>;

constexpr const char* part_names[] = {"train", "valid", "test"};

void add_flag(flag_words& to, const std::string& flag, std::int64_t value) {
  to.push_back("--" + flag);
  to.push_back(std::to_string(value));
}

/// The flags of the data. The state has the weights of a schedule.
flag_words data_flags(const served_case& c, const test::drawn_case& drawn) {
  const bool megatron = c.order == case_order::megatron;
  flag_words flags = {"--data-path"};
  if (megatron && c.split == "none")
    flags[0] = std::string("--") + part_names[c.part] + "-data-path";
  for (std::size_t s = 0; s < drawn.prefixes.size(); ++s) {
    if (c.blend.size() == 1) flags.push_back(std::to_string(c.blend[0].weights[s]));
    flags.push_back(drawn.prefixes[s].string());
  }
  if (megatron && c.split != "none") flags.insert(flags.end(), {"--split", c.split});
  return flags;
}

/// The flags that describe the run of a case.
flag_words flags_of(const served_case& c, const test::drawn_case& drawn, const std::string& state) {
  const std::string order = test::case_orders[static_cast<std::size_t>(c.order)];
  flag_words flags = data_flags(c, drawn);
  flags.insert(flags.end(), {"--order", c.order == case_order::packed ? "instant" : order});
  if (c.order == case_order::packed) {
    flags.insert(flags.end(), {"--packing", std::string(name(c.packing))});
    if (c.packing != dataset::packing_algorithm::best_fit) flags.push_back("--leave-out-overlong");
    add_flag(flags, "pad-documents-to", c.pad_documents_to);
  }
  add_flag(flags, "seq-length", c.seq_len);
  if (c.order != case_order::stored) add_flag(flags, "seed", c.seed);
  const bool megatron = c.order == case_order::megatron;
  if (megatron) {
    flags.insert(flags.end(), {"--part", part_names[c.part], "--mid-level-dataset-surplus", "0.5"});
    if (!c.extra_token) flags.push_back("--no-extra-token");
    if (c.keep_partial) flags.push_back("--keep-partial-validation");
    if (c.fused) flags.insert(flags.end(), {"--blend-rounding", "fused"});
  }
  if (c.samples >= 0 && c.order != case_order::stored) {
    add_flag(flags, std::string(megatron ? part_names[c.part] : "train") + "-samples", c.samples);
  }
  add_flag(flags, "ranks", c.world_size);
  add_flag(flags, "micro-batch-size", c.batch_size);
  if (c.global_batch_size > 0) add_flag(flags, "global-batch-size", c.global_batch_size);
  if (c.rampup) {
    add_flag(flags, "rampup-batch-size", c.rampup->start);
    for (const std::int64_t n : {c.rampup->increment, c.rampup->samples}) {
      flags.push_back(std::to_string(n));
    }
  }
  if (c.sampler == sampler_type::cyclic) {
    flags.insert(flags.end(), {"--dataloader-type", "cyclic"});
    if (!c.data_sharding) flags.push_back("--no-data-sharding");
  }
  if (c.sampler == sampler_type::full_validation) flags.push_back("--full-validation");
  if (!c.drop_last) flags.push_back("--no-drop-last");
  add_flag(flags, "consumed-samples", c.consumed_samples);
  if (!state.empty()) flags.insert(flags.end(), {"--state", state});
  return flags;
}

/// The reason why flags cannot describe the case, or an empty text.
std::string not_in_flags(const served_case& c, const dataset::run& run) {
  const bool all_once = c.sampler == sampler_type::full_validation;
  if (c.order == case_order::megatron && all_once && (c.part != 1 || c.samples >= 0)) {
    return "full validation of another part";  // Megatron has it for the part valid only
  }
  if (all_once && !c.blend.empty()) return "full validation of a weighted blend";
  if (c.samples < 0 && run.end() == std::numeric_limits<std::int64_t>::max()) {
    return "no end";  // the state, which has the names of the sources, needs an end
  }
  return "";
}

std::vector<std::int64_t> numbers_at(const simdjson::dom::element& row, const char* key) {
  std::vector<std::int64_t> all;
  for (const std::int64_t n : simdjson::dom::array(row[key])) all.push_back(n);
  return all;
}

void expect_shown_row(const simdjson::dom::element& shown, const case_row& served) {
  ASSERT_EQ(std::int64_t(shown["sample"]), served.sample);
  auto fields = numbers_at(shown, "tokens");
  for (const char* key : {"labels", "position_ids", "loss_mask"}) {
    const auto more = numbers_at(shown, key);
    fields.insert(fields.end(), more.begin(), more.end());
  }
  ASSERT_EQ(fields, served.fields);
  std::vector<std::int64_t> boundaries(served.boundaries.begin(), served.boundaries.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  ASSERT_EQ(numbers_at(shown, "boundaries"), boundaries);
}

void expect_shown_batch(const simdjson::dom::element& shown, const case_batch& served) {
  ASSERT_EQ(std::int64_t(shown["step"]), served.step);
  ASSERT_EQ(std::int64_t(shown["micro_batches"]), served.micro_batches);
  ASSERT_EQ(std::int64_t(shown["first_sample"]), served.first_sample);
  ASSERT_EQ(numbers_at(shown, "cu_seqlens"),
            std::vector<std::int64_t>(served.cu_seqlens.begin(), served.cu_seqlens.end()));
  ASSERT_EQ(std::int64_t(shown["max_seqlen"]), served.max_seqlen);
  const simdjson::dom::array rows = shown["rows"];
  ASSERT_EQ(rows.size(), served.rows.size());
  std::size_t r = 0;
  for (const simdjson::dom::element row : rows) expect_shown_row(row, served.rows[r++]);
}

using batch_slot_of_step = std::pair<std::int64_t, std::int64_t>;  // rank and micro-batch
using batches_by_step = std::map<std::int64_t, std::map<batch_slot_of_step, case_batch>>;

/// All batches with rows, by step.
batches_by_step served_steps(const served_case& c, const test::drawn_case& drawn) {
  batches_by_step all;
  for (std::int64_t rank = 0; rank < c.world_size; ++rank) {
    for (case_batch& batch : test::serve(c, drawn.run, drawn.prefixes, rank)) {
      const batch_slot_of_step at{rank, batch.micro_batch};
      if (!batch.rows.empty()) all[batch.step][at] = std::move(batch);
    }
  }
  return all;
}

/// Shows a step. Returns the number of batches that were compared.
void compare_step(const flag_words& flags, std::int64_t step,
                  std::map<batch_slot_of_step, case_batch> served, bool may_be_cut) {
  flag_words command = {test::program("inspect_dataset").string(), "show"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {"--step", std::to_string(step), "--json", "--all"});
  const auto result = test::run_program(command);
  ASSERT_EQ(result.status, 0) << testing::PrintToString(command) << '\n' << result.err;
  simdjson::dom::parser parser;
  const simdjson::dom::element answer = parser.parse(result.out);
  for (const simdjson::dom::element shown : simdjson::dom::array(answer["batches"])) {
    const batch_slot_of_step at{std::int64_t(shown["rank"]), std::int64_t(shown["micro_batch"])};
    SCOPED_TRACE(testing::Message() << "rank " << at.first << ", micro-batch " << at.second);
    const auto found = served.find(at);
    if (found == served.end() && may_be_cut) continue;
    ASSERT_TRUE(found != served.end()) << "not served";
    expect_shown_batch(shown, found->second);
    if (testing::Test::HasFatalFailure()) return;
    served.erase(found);
  }
  ASSERT_TRUE(served.empty()) << "not shown";
}

class ShownBatches : public testing::TestWithParam<case_order> {};

TEST_P(ShownBatches, AreThoseOfTheLoader) {
  if (!std::filesystem::exists(test::program("inspect_dataset"))) {
    GTEST_SKIP() << "needs the program inspect_dataset";
  }
  constexpr int cases = 40;
  const std::uint64_t first_seed = test::seed(500);
  std::map<std::string, int> seen;
  for (int i = 0; i < cases; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    test::split_mix random(seed * 4 + static_cast<std::uint64_t>(GetParam()));
    const auto drawn = test::draw_case(random, GetParam());
    const served_case& c = drawn->config;
    SCOPED_TRACE(testing::Message() << "MILLRACE_SEED=" << seed << ": " << test::case_text(c));
    if (i % 2 == 0) test::write_odd_mask(drawn->prefixes[0]);
    if (const std::string why = not_in_flags(c, *drawn->run); !why.empty()) {
      ++seen["skipped: " + why];
      continue;
    }
    const bool needs_state =
        c.order == case_order::instant || c.order == case_order::packed || !c.edits.empty();
    const auto options = test::options_of(c, drawn->prefixes, 0);
    const auto state = drawn->folder / "state.json";
    if (needs_state) {
      auto saved = batch_loader(drawn->run, options).state();
      test::write_text(state, write_state(saved));
    }
    const flag_words flags = flags_of(c, *drawn, needs_state ? state.string() : "");
    const batches_by_step all = served_steps(c, *drawn);
    if (all.empty()) continue;
    // The first step, the last step and one between them. The case may end inside the last one.
    const auto last = std::prev(all.end());
    const auto middle = std::next(all.begin(), static_cast<std::ptrdiff_t>(all.size() / 2));
    const std::set<std::int64_t> asked = {all.begin()->first, middle->first, last->first};
    for (const std::int64_t step : asked) {
      SCOPED_TRACE(testing::Message() << "step " << step);
      compare_step(flags, step, all.at(step), step == last->first);
      if (HasFailure()) return;
      ++seen["steps"];
    }
    ++seen[test::case_samplers[static_cast<std::size_t>(c.sampler)]];
    if (c.data.size() > 1) ++seen["several datasets"];
    if (!c.edits.empty()) ++seen["edits"];
    if (c.rampup) ++seen["ramp-up"];
    if (c.blend.size() > 1) ++seen["schedule"];
    if (c.consumed_samples > 0) ++seen["later start"];
  }
  for (const auto& [what, count] : seen) std::cout << what << ": " << count << "; ";
  std::cout << '\n';
  EXPECT_GT(seen["steps"], 40);
  for (const char* what : {"single", "cyclic", "edits", "later start"}) {
    EXPECT_GT(seen[what], 0) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ShownBatches,
                         testing::Values(case_order::stored, case_order::megatron,
                                         case_order::instant, case_order::packed),
                         [](const auto& order) {
                           return std::string(
                               test::case_orders[static_cast<std::size_t>(order.param)]);
                         });

}  // namespace
}  // namespace millrace::loader
