// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/state.hpp>

namespace millrace::dataset {
namespace {

run_state two_sources() {
  run_state state;
  state.seq_len = 8;
  state.data.resize(2);
  state.data[0].prefix = "a";
  state.data[1].prefix = "b";
  state.schedule.push_back({0, {0, 1}, {0.5, 0.5}});
  edit skip;
  skip.last = 4;
  skip.why = "spike";
  state.edits.push_back(skip);
  return state;
}

// A state has 25 fields and its sources have 9, in formats/spec/state.md. Each is changed once.
TEST(DiffStates, NamesEveryFieldThatDiffers) {
  using change = std::pair<std::string, std::function<void(run_state&)>>;
  const std::vector<change> changes = {
      {"order", [](run_state& s) { s.order = "stored"; }},
      {"seed", [](run_state& s) { s.seed = 7; }},
      {"seq_len", [](run_state& s) { s.seq_len = 9; }},
      {"consumed_samples", [](run_state& s) { s.consumed_samples = 64; }},
      {"global_batch", [](run_state& s) { s.global_batch = 64; }},
      {"extra_token", [](run_state& s) { s.extra_token = false; }},
      {"packing", [](run_state& s) { s.packing = "best_fit"; }},
      {"pad_documents_to", [](run_state& s) { s.pad_documents_to = 4; }},
      {"split", [](run_state& s) { s.split = "1,1,1"; }},
      {"split_part", [](run_state& s) { s.split_part = "valid"; }},
      {"samples",
       [](run_state& s) {
         s.samples = {40, 0, 0};
       }},
      {"surplus", [](run_state& s) { s.surplus = 0.25; }},
      {"weighted", [](run_state& s) { s.weighted = false; }},
      {"blend_rounding", [](run_state& s) { s.blend_rounding = "fused"; }},
      {"drop_last_partial_sequence", [](run_state& s) { s.drop_last_partial_sequence = false; }},
      {"rampup_batch",
       [](run_state& s) {
         s.rampup_batch = {1, 1, 8};
       }},
      {"sampler", [](run_state& s) { s.sampler = "cyclic"; }},
      {"micro_batch", [](run_state& s) { s.micro_batch = 2; }},
      {"ranks", [](run_state& s) { s.ranks = 2; }},
      {"sampled", [](run_state& s) { s.sampled = 2; }},
      {"data_sharding", [](run_state& s) { s.data_sharding = false; }},
      {"tokenizer", [](run_state& s) { s.tokenizer = "c302c39077e8"; }},
      {"data[1].prefix", [](run_state& s) { s.data[1].prefix = "c"; }},
      {"data[1].weight", [](run_state& s) { s.data[1].weight = 0.5; }},
      {"data[0].tokens", [](run_state& s) { s.data[0].tokens = 5; }},
      {"data[0].sequences", [](run_state& s) { s.data[0].sequences = 5; }},
      {"data[0].documents", [](run_state& s) { s.data[0].documents = 5; }},
      {"data[0].bin_bytes", [](run_state& s) { s.data[0].bin_bytes = 5; }},
      {"data[0].idx_bytes", [](run_state& s) { s.data[0].idx_bytes = 5; }},
      {"data[0].root", [](run_state& s) { s.data[0].root = "00"; }},
      {"data[0].name", [](run_state& s) { s.data[0].name = "web"; }},
      {"data[1]", [](run_state& s) { s.data.pop_back(); }},
      {"schedule[0].weights",
       [](run_state& s) {
         s.schedule[0].weights = {0.25, 0.75};
       }},
      {"schedule[1]",
       [](run_state& s) {
         s.schedule.push_back({8, {0}, {1.0}});
       }},
      {"edits[0].why", [](run_state& s) { s.edits[0].why = "leak"; }},
      {"edits[0]", [](run_state& s) { s.edits.clear(); }},
  };
  const run_state a = two_sources();
  EXPECT_TRUE(diff_states(a, a).empty());
  for (const auto& [field, make] : changes) {
    SCOPED_TRACE(field);
    run_state b = a;
    make(b);
    const auto found = diff_states(a, b);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].field, field);
    EXPECT_NE(found[0].a, found[0].b);
    const auto reverse = diff_states(b, a);
    ASSERT_EQ(reverse.size(), 1);
    EXPECT_EQ(reverse[0], (state_difference{field, found[0].b, found[0].a}));
  }
}

TEST(DiffStates, ShowsValuesAsJson) {
  const run_state a = two_sources();
  run_state b = a;
  b.seed = 18'446'744'073'709'551'615U;
  b.data.pop_back();
  const auto found = diff_states(a, b);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0], (state_difference{"seed", "1234", "18446744073709551615"}));
  EXPECT_EQ(found[1].a.substr(0, 15), R"({"prefix": "b",)");
  EXPECT_EQ(found[1].b, "");
}

}  // namespace
}  // namespace millrace::dataset
