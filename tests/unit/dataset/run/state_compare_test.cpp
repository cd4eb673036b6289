// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/state.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/run/edited_stream.hpp>

#include "unit/dataset/run/example_state.hpp"

namespace millrace::dataset {
namespace {

using test::example_state;
using test::fault;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string difference(const run_state& now, const resume_terms& terms = {},
                       const run_state& saved = example_state()) {
  return fault([&] { require_same(saved, now, terms); });
}

// Every changed option is found. A change is accepted if the name of the option is in the list
// `allow`.
TEST(StateCompare, NamesEveryOptionThatChanges) {
  const auto expect_named = [](const std::string& option,
                               const std::function<void(run_state&)>& change) {
    run_state now = example_state();
    change(now);
    const std::string found = difference(now);
    EXPECT_THAT(found, AllOf(HasSubstr(option), HasSubstr("consumed_samples 1048576"))) << option;
    EXPECT_EQ(difference(now, {.allow = {option}}), "") << option;
  };
  expect_named("order", [](run_state& s) { s.order = "megatron"; });
  expect_named("seed", [](run_state& s) { ++s.seed; });
  expect_named("seq_len", [](run_state& s) { s.seq_len = 2048; });
  expect_named("extra_token", [](run_state& s) { s.extra_token = true; });
  expect_named("packing", [](run_state& s) { s.packing = "none"; });
  expect_named("pad_documents_to", [](run_state& s) { s.pad_documents_to = 8; });
  expect_named("last_token_as_label", [](run_state& s) { s.last_token_as_label = false; });
  expect_named("split", [](run_state& s) { s.split = "1"; });
  expect_named("split_part", [](run_state& s) { s.split_part = "train"; });
  expect_named("surplus", [](run_state& s) { s.surplus = 0.2; });
  expect_named("drop_last_partial_sequence",
               [](run_state& s) { s.drop_last_partial_sequence = true; });
  expect_named("global_batch", [](run_state& s) { s.global_batch = 256; });
  expect_named("rampup_batch", [](run_state& s) { s.rampup_batch[1] = 1; });
  expect_named("sampler", [](run_state& s) { s.sampler = "cyclic"; });
  expect_named("tokenizer", [](run_state& s) { s.tokenizer = "0"; });
  expect_named("data", [](run_state& s) { s.data.pop_back(); });
  expect_named("schedule", [](run_state& s) { s.schedule[1].weights[0] = 0.2; });
  expect_named("edits", [](run_state& s) { s.edits[0].last = 5; });
}

TEST(StateCompare, RefusesUnknownNamesInAllow) {
  const run_state now = example_state();
  EXPECT_THAT(difference(now, {.allow = {"seed", "sed"}}),
              AllOf(StartsWith("\"sed\" is allowed to change, but a state has no such option"),
                    HasSubstr("expected one of "), HasSubstr("seed, "), HasSubstr("edits")));
}

TEST(StateCompare, SaysBothValues) {
  run_state now = example_state();
  now.seq_len = 2048;
  now.seed = 1;
  EXPECT_EQ(difference(now),
            "seed is 1, but was 4321 when the state was saved, at consumed_samples 1048576: other "
            "samples would be served; restore the old value, or allow \"seed\" to change");
  EXPECT_THAT(difference(now, {.allow = {"seed"}}), HasSubstr("seq_len is 2048, but was 4096"));
}

TEST(StateCompare, LetsThroughWhatChangesNothing) {
  run_state now = example_state();
  now.consumed_samples = 0;
  now.data[0].prefix = "/elsewhere/web";
  now.data[1].root = "aaaa";  // the state has no root: sizes decide
  now.samples = {5};          // only a limit in the instant order
  now.micro_batch = 8;        // only matters for the cyclic sampler
  now.ranks = 64;
  now.data_sharding = false;
  EXPECT_EQ(difference(now), "");
}

TEST(StateCompare, TellsDatasetsApart) {
  const auto changed = [](const std::function<void(state_source&)>& change) {
    run_state now = example_state();
    change(now.data[0]);
    return difference(now);
  };
  EXPECT_THAT(changed([](state_source& s) { s.root = "aaaa"; }),
              AllOf(HasSubstr("data[0] (web): its root is \"aaaa\", but was \"9f2c\""),
                    HasSubstr("it is another dataset")));
  EXPECT_THAT(changed([](state_source& s) { ++s.tokens; }), HasSubstr("its tokens is 101"));
  EXPECT_THAT(changed([](state_source& s) { ++s.sequences; }), HasSubstr("its sequences"));
  EXPECT_THAT(changed([](state_source& s) { ++s.documents; }), HasSubstr("its documents"));
  EXPECT_THAT(changed([](state_source& s) { ++s.bin_bytes; }), HasSubstr("its bin_bytes"));
  EXPECT_THAT(changed([](state_source& s) { ++s.idx_bytes; }), HasSubstr("its idx_bytes"));
  EXPECT_EQ(changed([](state_source& s) { s.root = ""; }), "");
  EXPECT_EQ(changed([](state_source& s) { s.weight = 5; }), "") << "the schedule has the weights";
}

TEST(StateCompare, HoldsNamesWhereTheOrderIsKeyedByThem) {
  run_state saved = example_state();
  run_state now = saved;
  now.data[0].prefix = "/elsewhere/web_v2";
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("its name is \"web_v2\", but was \"web\""));
  now.data[0].name = "web";  // as before the file was moved
  EXPECT_EQ(difference(now, {}, saved), "");
  EXPECT_EQ(parse_state(write_state(now)), now);
  now.data[0].name = "";
  saved.order = now.order = "megatron";
  EXPECT_EQ(difference(now, {}, saved), "");
}

TEST(StateCompare, CountsWeightsWhereThereIsNoSchedule) {
  run_state saved = example_state();
  saved.schedule.clear();
  run_state now = saved;
  now.data[1].weight = 0.5;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("its weight is 0.5, but was 0.3"));
  now = saved;
  now.data.push_back(now.data[0]);
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("the number of datasets is 3, but was 2"));
}

// Datasets without weights are not the same as datasets with equal weights. Blends that are
// computed with different roundings are not the same.
TEST(StateCompare, HoldsHowMegatronBlends) {
  run_state saved = example_state();
  saved.order = "megatron";
  saved.schedule.clear();
  saved.weighted = true;
  saved.blend_rounding = name(blend_rounding::twice);
  run_state now = saved;
  now.weighted = false;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("weighted is false, but was true"));
  now.data[0].weight = saved.data[0].weight = 0.5;
  saved.weighted = false;
  now.data[0].weight = 0.7;  // ignored, because the state has no weights
  EXPECT_EQ(difference(now, {}, saved), "");
  now.blend_rounding = name(blend_rounding::fused);
  EXPECT_THAT(difference(now, {}, saved),
              HasSubstr("blend_rounding is \"fused\", but was \"twice"));
  EXPECT_EQ(difference(now, {.allow = {"blend_rounding"}}, saved), "");
  now.data.resize(1);
  saved.data.resize(1);  // a single dataset is not blended
  EXPECT_EQ(difference(now, {}, saved), "");
  saved.order = now.order = "instant";
  now.data[0].weight = saved.data[0].weight;
  now.weighted = true;
  EXPECT_EQ(difference(now, {}, saved), "");
}

TEST(StateCompare, CountsSamplesWhereTheOrderIsMegatrons) {
  run_state saved = example_state();
  saved.order = "megatron";
  run_state now = saved;
  now.samples[0] = 1001;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("samples is [1001, -1, 0], but was [1000, "));
}

TEST(StateCompare, LetsAScheduleChangeAhead) {
  run_state saved = example_state();
  saved.rampup_batch.clear();
  saved.edits.clear();
  saved.consumed_samples = 512 * 150 - 1;  // in the 150th step
  run_state now = saved;
  now.data.push_back({"new", 1, 1, 1, 1, 1, 1, ""});
  now.schedule.push_back({150, {2}, {1.0}});
  EXPECT_EQ(difference(now, {}, saved), "");
  now.schedule.back().first_step = 149;
  EXPECT_THAT(difference(now, {}, saved),
              AllOf(HasSubstr("schedule[2] is {\"first_step\": 149"), HasSubstr("but was none"),
                    HasSubstr("the run has served samples of 150 steps")));
  // A segment that has not begun may be removed. A segment that has begun may not.
  run_state longer = saved;
  longer.schedule.push_back({200, {1}, {1.0}});
  EXPECT_EQ(difference(saved, {}, longer), "");
  longer.schedule.back().first_step = 120;
  EXPECT_THAT(difference(saved, {}, longer), HasSubstr("schedule[2] is none, but was "));
  // With a ramp-up, the number of steps is not the number of samples divided by global_batch.
  saved.rampup_batch = now.rampup_batch = {32, 32, 1000};
  now.schedule.back().first_step = 1000000;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("the number of completed steps is unknown"));
  EXPECT_EQ(difference(now, {.steps_done = 1000}, saved), "");
}

// Skipped positions count, so the run has moved further than the number of consumed samples shows.
// A segment that begins before that point would change samples that were already served.
TEST(StateCompare, KnowsHowFarEditsHaveMovedTheRun) {
  run_state saved = example_state();
  saved.rampup_batch.clear();
  saved.edits = {{.first = 0, .last = std::int64_t{512} * 10, .why = "spike"}};
  saved.consumed_samples = std::int64_t{512} * 150;  // steps 10 to 159
  run_state now = saved;
  now.schedule.push_back({155, {1}, {1.0}});
  EXPECT_THAT(
      difference(now, {}, saved),
      HasSubstr("pass the terms saved_stream, because edits shift the samples, or steps_done"));
  const edited_stream stream(
      saved.edits, [](std::int64_t step) { return step * 512; },
      [](const edit&) { return std::vector<position_range>(); });
  EXPECT_THAT(difference(now, {.saved_stream = &stream}, saved),
              HasSubstr("the run has served samples of 160 steps"));
  now.schedule.back().first_step = 160;
  EXPECT_EQ(difference(now, {.saved_stream = &stream}, saved), "");
  EXPECT_EQ(difference(now, {.steps_done = 160}, saved), "");
}

TEST(StateCompare, LetsEditsBeAdded) {
  const run_state saved = example_state();
  run_state now = saved;
  now.edits.push_back({.first = 5, .last = 6, .since = 1048576, .why = "new"});
  EXPECT_EQ(difference(now), "");
  now.edits.back().since = 1048575;
  EXPECT_THAT(difference(now), AllOf(HasSubstr("edits[3] is {\"skip_samples\": [5, 6]"),
                                     HasSubstr("must set \"since\": 1048576 or more")));
  now.edits.resize(2);
  EXPECT_THAT(difference(now), HasSubstr("edits[2] is none, but was {\"block_documents\""));

  // With the edited streams, the comparison counts only samples that were actually served.
  const auto stream = [](const std::vector<edit>& edits) {
    return edited_stream(
        edits, [](std::int64_t step) { return step * 512; },
        [](const edit&) { return std::vector<position_range>(); });
  };
  const auto before = stream(saved.edits);
  now = saved;
  now.edits.push_back({.first = 2000000, .last = 2000001, .why = "new"});
  auto after = stream(now.edits);
  EXPECT_EQ(difference(now, {.saved_stream = &before, .new_stream = &after}), "");
  now.edits.back().first = 1000;
  after = stream(now.edits);
  EXPECT_THAT(difference(now, {.saved_stream = &before, .new_stream = &after}),
              HasSubstr("may set \"since\": 1048576"));

  // An edit for later positions must not be removed, even if it has not changed any sample yet.
  run_state later = saved;
  later.edits = {{.first = 2000000, .last = 2000040, .why = "poisoned"}};
  const auto poisoned = stream(later.edits);
  const edited_stream none;
  now = later;
  now.edits.clear();
  EXPECT_THAT(difference(now, {.saved_stream = &poisoned, .new_stream = &none}, later),
              HasSubstr("edits[0] is none, but was {\"skip_samples\": [2000000, 2000040]"));
  now.edits = later.edits;
  now.edits.insert(now.edits.begin(), {.first = 3000000, .last = 3000001, .why = "new"});
  after = stream(now.edits);
  EXPECT_THAT(difference(now, {.saved_stream = &poisoned, .new_stream = &after}, later),
              HasSubstr("edits[0] is {\"skip_samples\": [3000000"));
  EXPECT_EQ(difference(now, {.allow = {"edits"}}, later), "");
}

TEST(StateCompare, LetsCyclicChangeItsRanksBetweenEpochsOnly) {
  run_state saved = example_state();
  saved.sampler = "cyclic";
  saved.sampled = 1000;
  saved.micro_batch = 4;
  saved.ranks = 8;  // rounds of 32: 992 samples per epoch
  saved.consumed_samples = std::int64_t{992} * 3;
  run_state now = saved;
  EXPECT_EQ(difference(now, {}, saved), "");
  now.ranks = 4;  // rounds of 16: also 992
  EXPECT_EQ(difference(now, {}, saved), "");
  now.micro_batch = 8;  // rounds of 32
  EXPECT_EQ(difference(now, {}, saved), "");
  now.micro_batch = 4;
  now.ranks = 5;  // rounds of 20: 1000
  EXPECT_THAT(difference(now, {}, saved),
              AllOf(HasSubstr("ranks of the cyclic sampler is 5, but was 8"),
                    HasSubstr("of 1000 samples with 5 ranks of 4")));
  saved.consumed_samples = std::int64_t{992} * 1000;  // end of an epoch for both
  EXPECT_EQ(difference(now, {}, saved), "");
  saved.consumed_samples = 992 * 3 + 32;
  now.ranks = 4;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("of 992 samples with 8 ranks of 4"));
  EXPECT_EQ(difference(now, {.allow = {"ranks"}}, saved), "");
  now = saved;
  now.micro_batch = 2;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("micro_batch of the cyclic sampler is 2"));
  EXPECT_EQ(difference(now, {.allow = {"micro_batch"}}, saved), "");
  now = saved;
  now.sampled = 1001;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("sampled is 1001, but was 1000"));
  // Only the allowed changes are accepted.
  EXPECT_EQ(difference(now, {.allow = {"sampled"}}, saved), "");
  for (const char* other : {"ranks", "micro_batch"}) {
    EXPECT_THAT(difference(now, {.allow = {other}}, saved), HasSubstr("sampled is 1001"));
  }
  now = saved;
  now.micro_batch = 2;
  EXPECT_THAT(difference(now, {.allow = {"ranks"}}, saved), HasSubstr("micro_batch of the cyclic"));
  now.ranks = 4;
  EXPECT_THAT(difference(now, {.allow = {"micro_batch"}}, saved), HasSubstr("ranks of the cyclic"));
  EXPECT_EQ(difference(now, {.allow = {"micro_batch", "ranks"}}, saved), "");
  now = saved;
  now.data_sharding = false;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("data_sharding is false"));
}

}  // namespace
}  // namespace millrace::dataset
