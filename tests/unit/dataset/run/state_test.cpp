// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/state.hpp>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/megatron/blend_rounding.hpp>
#include <millrace/dataset/run/state_compare.hpp>

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

run_state example() {
  run_state s;
  s.seed = 4321;
  s.seq_len = 4096;
  s.packing = "best_fit";
  s.pad_documents_to = 16;
  s.split = "969, 30, 1";
  s.split_part = "valid";
  s.samples = {1000, -1, 0};
  s.surplus = 0.1;
  s.weighted = false;
  s.blend_rounding = "fused";
  s.extra_token = false;
  s.drop_last_partial_sequence = false;
  s.global_batch = 512;
  s.rampup_batch = {32, 32, 1000000};
  s.tokenizer = "9f2c";
  s.data = {{"web", 0.7, 100, 10, 9, 200, 300, "9f2c"},
            {"code \"C\"", 0.3, 50, 5, 5, 100, 150, ""}};
  s.schedule = {{0, {0}, {1.0}}, {100, {0, 1}, {0.1, 1.0 / 3}}};
  s.edits = {{.first = 1000000, .last = 1000512, .why = "loss spike at step 1953"},
             {.kind = edit_kind::replay,
              .unit = edit_unit::steps,
              .first = 1,
              .last = 2,
              .at = 3,
              .since = 7,
              .why = "again"},
             {.kind = edit_kind::block,
              .unit = edit_unit::documents,
              .first = 4,
              .last = 5,
              .source = "web",
              .why = "leaked"}};
  s.consumed_samples = 1048576;
  return s;
}

template <class Error = config_error>
std::string fault(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(State, IsWhatWasWritten) {
  for (const run_state& s : {example(), run_state()}) {
    const std::string text = write_state(s);
    EXPECT_EQ(parse_state(text), s) << text;
    EXPECT_EQ(write_state(parse_state(text)), text);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.rfind("{\"millrace_state\": 1, \"order\": \"instant\"", 0), 0U) << text;
  }
}

// A seed is 64 bits wherever it decides an order.
TEST(State, HoldsEverySeed) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    run_state s;
    s.seed = seed;
    EXPECT_EQ(parse_state(write_state(s)).seed, seed);
  }
  EXPECT_EQ(
      fault([] { (void)parse_state("{\"millrace_state\": 1, \"seed\": -5}"); }),
      "\"seed\" of the state is a whole number, -5, expected a whole number of 0 to 2^64 - 1");
  EXPECT_THAT(
      fault([] {
        (void)parse_state("{\"millrace_state\": 1, \"consumed_samples\": 9223372036854775808}");
      }),
      HasSubstr("\"consumed_samples\" of the state is a whole number, 9223372036854775808, "
                "expected a whole number below 2^63"));
}

TEST(State, MayBeWrittenByHand) {
  const run_state s = parse_state(R"({"millrace_state": 1, "order": "instant", "seed": 1234,
    "seq_len": 4096, "consumed_samples": 1048576, "global_batch": 512,
    "data": [{"prefix": "web_text_document", "weight": 1, "tokens": 123456789, "root": "9f2c"}],
    "edits": [{"skip_samples": [1000000, 1000512], "why": "loss spike at step 1953"}]})");
  EXPECT_EQ(s.seq_len, 4096);
  EXPECT_EQ(s.global_batch, 512);
  EXPECT_EQ(s.data.at(0).tokens, 123456789);
  EXPECT_EQ(s.data.at(0).weight, 1.0);
  EXPECT_EQ(s.edits.at(0).last, 1000512);
  EXPECT_EQ(s.packing, "none");
  EXPECT_TRUE(s.extra_token);
}

TEST(State, RefusesWhatIsNone) {
  const auto of = [](const std::string& text) { return fault([&] { (void)parse_state(text); }); };
  EXPECT_THAT(fault<format_error>([] { (void)parse_state("{\"millrace_state\": 1"); }),
              HasSubstr("not JSON"));
  EXPECT_THAT(of("{}"), HasSubstr("no state of a run: it has no \"millrace_state\""));
  EXPECT_THAT(of("[1]"), HasSubstr("no state of a run"));
  EXPECT_THAT(of("{\"millrace_state\": 2}"), HasSubstr("of version 2, expected 1"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"sead\": 5}"), HasSubstr("the state has \"sead\""));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"seed\": \"5\"}"),
              HasSubstr("\"seed\" of the state is a string, expected a whole number"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"seed\": 5.0}"),
              HasSubstr("is a number, 5.0, expected"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"extra_token\": 1}"), HasSubstr("true or false"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"surplus\": null}"), HasSubstr("expected a number"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"data\": 1}"), HasSubstr("expected a list"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"data\": [1]}"),
              HasSubstr("\"data[0]\" of the state is a whole number, 1, expected an object"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"data\": [{\"size\": 1}]}"),
              HasSubstr("the state has \"data[0].size\""));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"edits\": [{\"why\": \"x\"}]}"),
              HasSubstr("\"edits[0]\" of the state is an object, expected skip_"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"edits\": [{\"skip_samples\": [1]}]}"),
              HasSubstr("expected skip_samples with two numbers"));
  EXPECT_THAT(of(R"({"millrace_state": 1, "edits": [{"skip_samples": [1, 2], "at_step": 1}]})"),
              HasSubstr("the state has \"edits[0].at_step\""));
  EXPECT_THAT(of(R"({"millrace_state": 1, "edits": [{"skip_samples": [1, 2]}]})"),
              HasSubstr("edit 0, skip_samples [1, 2]: expected a reason"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"consumed_samples\": -1}"),
              HasSubstr("consumed_samples of the state is -1, expected 0 to 2^62"));
}

// Each option out of its range, by its name.
TEST(State, RefusesWhatNoRunHas) {
  const auto refused = [](const std::function<void(run_state&)>& change) {
    run_state s = example();
    change(s);
    return fault([&] { (void)parse_state(write_state(s)); });
  };
  EXPECT_EQ(refused([](run_state& s) { s.order = "megatorn"; }),
            "order of the state is \"megatorn\", expected instant, megatron or stored");
  EXPECT_THAT(refused([](run_state& s) { s.packing = "first_fit"; }), HasSubstr("packing of the"));
  EXPECT_THAT(refused([](run_state& s) { s.split_part = "dev"; }), HasSubstr("split_part of the"));
  EXPECT_THAT(refused([](run_state& s) { s.sampler = ""; }), HasSubstr("sampler of the state"));
  EXPECT_THAT(refused([](run_state& s) { s.blend_rounding = "fma"; }),
              HasSubstr("blend_rounding of the state is \"fma\", expected twice or fused"));
  EXPECT_EQ(refused([](run_state& s) { s.seq_len = -1; }),
            "seq_len of the state is -1, expected 0 to 2^62");
  EXPECT_THAT(refused([](run_state& s) { s.global_batch = -5; }), HasSubstr("global_batch of"));
  EXPECT_THAT(refused([](run_state& s) { s.micro_batch = -5; }), HasSubstr("micro_batch of"));
  EXPECT_THAT(refused([](run_state& s) { s.ranks = -5; }), HasSubstr("ranks of"));
  EXPECT_THAT(refused([](run_state& s) { s.sampled = -5; }), HasSubstr("sampled of"));
  EXPECT_THAT(refused([](run_state& s) { s.pad_documents_to = 0; }),
              HasSubstr("pad_documents_to of the state is 0, expected 1 to 2^62"));
  EXPECT_THAT(refused([](run_state& s) { s.surplus = -0.5; }), HasSubstr("surplus of the state"));
  EXPECT_THAT(refused([](run_state& s) { s.samples[1] = -2; }),
              HasSubstr("samples of the state is -2, expected -1 to 2^62"));
  EXPECT_THAT(refused([](run_state& s) { s.samples.resize(4); }), HasSubstr("a list of 4"));
  EXPECT_THAT(refused([](run_state& s) { s.rampup_batch.pop_back(); }),
              HasSubstr("rampup_batch of the state is a list of 2"));
  EXPECT_THAT(refused([](run_state& s) { s.data[1].tokens = -1; }),
              HasSubstr("data[1].tokens of the state is -1"));
  EXPECT_THAT(refused([](run_state& s) { s.data[0].weight = -1; }),
              HasSubstr("data[0].weight of the state is -1"));
  EXPECT_EQ(refused([](run_state& s) { s.schedule[1].weights.pop_back(); }),
            "schedule[1].sources of the state has 2 entries, but weights has 1, expected one for "
            "each");
  EXPECT_THAT(refused([](run_state& s) { s.schedule[1].sources[0] = 2; }),
              HasSubstr("schedule[1].sources of the state names 2, but data has 2"));
  EXPECT_THAT(refused([](run_state& s) { s.schedule[1].weights[0] = 0; }),
              HasSubstr("schedule[1].weights of the state is 0"));
  EXPECT_THAT(refused([](run_state& s) { s.schedule[1].first_step = -1; }),
              HasSubstr("schedule[1].first_step of the state is -1, expected 0 to 2^40"));
  EXPECT_THAT(refused([](run_state& s) { s.consumed_samples = std::int64_t{1} << 62 | 1; }),
              HasSubstr("consumed_samples of the state"));
}

TEST(State, RefusesWhatJsonCannotHold) {
  run_state s = example();
  s.surplus = std::nan("");
  EXPECT_THAT(fault([&] { (void)write_state(s); }), HasSubstr("surplus is not a finite number"));
  s = example();
  s.data[0].prefix = "\xff";
  EXPECT_THAT(fault([&] { (void)write_state(s); }), HasSubstr("prefix is not UTF-8"));
}

std::string difference(const run_state& now, const resume_terms& terms = {},
                       const run_state& saved = example()) {
  return fault([&] { require_same(saved, now, terms); });
}

// Whatever is changed, it is found; and whoever allows it by its name, is let through.
TEST(StateCompare, NamesEveryOptionThatChanges) {
  const auto expect_named = [](const std::string& option,
                               const std::function<void(run_state&)>& change) {
    run_state now = example();
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

TEST(StateCompare, SaysBothValues) {
  run_state now = example();
  now.seq_len = 2048;
  now.seed = 1;
  EXPECT_EQ(difference(now),
            "seed is 1, but was 4321 when the state was saved, at consumed_samples 1048576: other "
            "samples would come; set it back, or allow \"seed\" to change");
  EXPECT_THAT(difference(now, {.allow = {"seed"}}), HasSubstr("seq_len is 2048, but was 4096"));
}

TEST(StateCompare, LetsThroughWhatChangesNothing) {
  run_state now = example();
  now.consumed_samples = 0;
  now.data[0].prefix = "/elsewhere/web";
  now.data[1].root = "aaaa";  // the state knows none: sizes decide
  now.samples = {5};          // a limit, where the order is instant
  now.micro_batch = 8;        // not cyclic
  now.ranks = 64;
  now.data_sharding = false;
  EXPECT_EQ(difference(now), "");
}

TEST(StateCompare, TellsDatasetsApart) {
  const auto changed = [](const std::function<void(state_source&)>& change) {
    run_state now = example();
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
  run_state saved = example();
  run_state now = saved;
  now.data[0].prefix = "/elsewhere/web_v2";
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("its name is \"web_v2\", but was \"web\""));
  now.data[0].name = "web";  // as it was before it was moved
  EXPECT_EQ(difference(now, {}, saved), "");
  EXPECT_EQ(parse_state(write_state(now)), now);
  now.data[0].name = "";
  saved.order = now.order = "megatron";
  EXPECT_EQ(difference(now, {}, saved), "");
}

TEST(StateCompare, CountsWeightsWhereThereIsNoSchedule) {
  run_state saved = example();
  saved.schedule.clear();
  run_state now = saved;
  now.data[1].weight = 0.5;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("its weight is 0.5, but was 0.3"));
  now = saved;
  now.data.push_back(now.data[0]);
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("the number of datasets is 3, but was 2"));
}

// Paths alone are not the same as equal weights, nor is a blend of one processor that of another.
TEST(StateCompare, HoldsHowMegatronBlends) {
  run_state saved = example();
  saved.order = "megatron";
  saved.schedule.clear();
  saved.weighted = true;
  saved.blend_rounding = name(blend_rounding::twice);
  run_state now = saved;
  now.weighted = false;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("weighted is false, but was true"));
  now.data[0].weight = saved.data[0].weight = 0.5;
  saved.weighted = false;
  now.data[0].weight = 0.7;  // none counts
  EXPECT_EQ(difference(now, {}, saved), "");
  now.blend_rounding = name(blend_rounding::fused);
  EXPECT_THAT(difference(now, {}, saved),
              HasSubstr("blend_rounding is \"fused\", but was \"twice"));
  EXPECT_EQ(difference(now, {.allow = {"blend_rounding"}}, saved), "");
  now.data.resize(1);
  saved.data.resize(1);  // a dataset that is alone is not blended
  EXPECT_EQ(difference(now, {}, saved), "");
  saved.order = now.order = "instant";
  now.data[0].weight = saved.data[0].weight;
  now.weighted = true;
  EXPECT_EQ(difference(now, {}, saved), "");
}

TEST(StateCompare, CountsSamplesWhereTheOrderIsMegatrons) {
  run_state saved = example();
  saved.order = "megatron";
  run_state now = saved;
  now.samples[0] = 1001;
  EXPECT_THAT(difference(now, {}, saved), HasSubstr("samples is [1001, -1, 0], but was [1000, "));
}

TEST(StateCompare, LetsAScheduleChangeAhead) {
  run_state saved = example();
  saved.rampup_batch.clear();
  saved.edits.clear();
  saved.consumed_samples = 512 * 150 - 1;  // in its 150th step
  run_state now = saved;
  now.data.push_back({"new", 1, 1, 1, 1, 1, 1, ""});
  now.schedule.push_back({150, {2}, {1.0}});
  EXPECT_EQ(difference(now, {}, saved), "");
  now.schedule.back().first_step = 149;
  EXPECT_THAT(difference(now, {}, saved),
              AllOf(HasSubstr("schedule[2] is {\"first_step\": 149"), HasSubstr("but was none"),
                    HasSubstr("the run has served samples of 150 steps")));
  // One that is to come may go again, one that has begun may not.
  run_state longer = saved;
  longer.schedule.push_back({200, {1}, {1.0}});
  EXPECT_EQ(difference(saved, {}, longer), "");
  longer.schedule.back().first_step = 120;
  EXPECT_THAT(difference(saved, {}, longer), HasSubstr("schedule[2] is none, but was "));
  // Where the batch is ramped up, steps are not samples over global_batch.
  saved.rampup_batch = now.rampup_batch = {32, 32, 1000};
  now.schedule.back().first_step = 1000000;
  EXPECT_THAT(difference(now, {}, saved),
              HasSubstr("how many steps the run has done is not known"));
  EXPECT_EQ(difference(now, {.steps_done = 1000}, saved), "");
}

// Skipped positions count: the run is further on than it has consumed, and a segment that begins
// before it got there would change what was served.
TEST(StateCompare, KnowsHowFarEditsHaveMovedTheRun) {
  run_state saved = example();
  saved.rampup_batch.clear();
  saved.edits = {{.first = 0, .last = 512 * 10, .why = "spike"}};
  saved.consumed_samples = 512 * 150;  // that is steps 10 to 159
  run_state now = saved;
  now.schedule.push_back({155, {1}, {1.0}});
  EXPECT_THAT(
      difference(now, {}, saved),
      HasSubstr("give the terms saved_stream, as edits move what is served, or steps_done"));
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
  const run_state saved = example();
  run_state now = saved;
  now.edits.push_back({.first = 5, .last = 6, .since = 1048576, .why = "new"});
  EXPECT_EQ(difference(now), "");
  now.edits.back().since = 1048575;
  EXPECT_THAT(difference(now), AllOf(HasSubstr("edits[3] is {\"skip_samples\": [5, 6]"),
                                     HasSubstr("must say \"since\": 1048576 or more")));
  now.edits.resize(2);
  EXPECT_THAT(difference(now), HasSubstr("edits[2] is none, but was {\"block_documents\""));

  // With the streams, what counts is what was served.
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
              HasSubstr("may say \"since\": 1048576"));
}

TEST(StateCompare, LetsCyclicChangeItsRanksBetweenEpochsOnly) {
  run_state saved = example();
  saved.sampler = "cyclic";
  saved.sampled = 1000;
  saved.micro_batch = 4;
  saved.ranks = 8;  // rounds of 32, so 992 samples an epoch
  saved.consumed_samples = 992 * 3;
  run_state now = saved;
  EXPECT_EQ(difference(now, {}, saved), "");
  now.ranks = 4;  // rounds of 16: 992 too
  EXPECT_EQ(difference(now, {}, saved), "");
  now.micro_batch = 8;  // rounds of 32
  EXPECT_EQ(difference(now, {}, saved), "");
  now.micro_batch = 4;
  now.ranks = 5;  // rounds of 20: 1000
  EXPECT_THAT(difference(now, {}, saved),
              AllOf(HasSubstr("ranks of the cyclic sampler is 5, but was 8"),
                    HasSubstr("of 1000 samples with 5 ranks of 4")));
  saved.consumed_samples = 992 * 1000;  // an epoch's end for both
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
  // What is allowed is let through alone.
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
