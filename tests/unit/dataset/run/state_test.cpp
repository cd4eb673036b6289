// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/state.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/run/example_state.hpp"

namespace millrace::dataset {
namespace {

using test::example_state;
using test::fault;

/// The message with which `parse_state` refuses the text.
std::string refusal_of(const std::string& text) {
  return fault<format_error>([&] { (void)parse_state(text); });
}
using testing::HasSubstr;

TEST(State, IsWhatWasWritten) {
  for (const run_state& s : {example_state(), run_state()}) {
    const std::string text = write_state(s);
    EXPECT_EQ(parse_state(text), s) << text;
    EXPECT_EQ(write_state(parse_state(text)), text);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(text.rfind("{\"millrace_state\": 1, \"order\": \"instant\"", 0), 0U) << text;
  }
}

TEST(State, IsWhatItsPageSays) {
  const std::string page = test::read_text(test::source_folder() / "formats/spec/state.md");
  const std::size_t begin = page.find("```json\n") + 8;
  const run_state s = parse_state(page.substr(begin, page.find("```", begin) - begin));
  EXPECT_EQ(s.data.at(0).documents, 40000);
  EXPECT_EQ(s.edits.at(0).last, 1000512);
  // Every field that a state writes is named on the page of the specification.
  std::string text = write_state(run_state());
  for (std::size_t at = text.find('"'); at != text.npos; at = text.find('"', at)) {
    const std::size_t end = text.find('"', at + 1);
    if (text.compare(end, 3, "\": ") == 0) {
      EXPECT_THAT(page, HasSubstr(text.substr(at + 1, end - at - 1))) << "is not on the page";
    }
    at = end + 1;
  }
}

// A state keeps all 64 bits of a seed.
TEST(State, HoldsEverySeed) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    run_state s;
    s.seed = seed;
    EXPECT_EQ(parse_state(write_state(s)).seed, seed);
  }
  EXPECT_EQ(refusal_of("{\"millrace_state\": 1, \"seed\": -5}"),
            "\"seed\" of the state is a whole number, -5, expected a whole number of 0 to 2^64 - 1 "
            "(at byte 22)");
  EXPECT_THAT(refusal_of("{\"millrace_state\": 1, \"consumed_samples\": 9223372036854775808}"),
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
  const auto of = refusal_of;
  EXPECT_THAT(of("{\"millrace_state\": 1"), HasSubstr("not JSON"));
  EXPECT_THAT(of("{}"), HasSubstr("not a run state: it has no \"millrace_state\""));
  EXPECT_THAT(of("[1]"), HasSubstr("not a run state"));
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
  EXPECT_THAT(
      of("{\"millrace_state\": 1, \"edits\": [{\"skip_samples\": [1]}]}"),
      HasSubstr("\"edits[0].skip_samples\" of the state is a list of 1, expected two numbers"));
  EXPECT_THAT(of(R"({"millrace_state": 1, "edits": [{"skip_samples": [1, 2], "at_step": 1}]})"),
              HasSubstr("the state has \"edits[0].at_step\""));
  EXPECT_THAT(of(R"({"millrace_state": 1, "edits": [{"skip_samples": [1, 2]}]})"),
              HasSubstr("edit 0, skip_samples [1, 2]: why is empty, expected a reason"));
  EXPECT_THAT(of("{\"millrace_state\": 1, \"consumed_samples\": -1}"),
              HasSubstr("consumed_samples of the state is -1, expected 0 to 2^62"));
}

// The byte is that of the option's name, of an element in a list, or of what lacks the option.
TEST(State, NamesTheByteOfAFault) {
  const std::string text = R"({"millrace_state": 1, "data": [{"prefix": "a"}, {"tokens": -1}],
    "schedule": [{"weights": [1.0]}], "samples": [1, "2"], "edits": [{"skip_samples": [1, 2]}]})";
  const auto byte_of = [](const std::string& state) -> std::int64_t {
    try {
      (void)parse_state(state);
      return -1;
    } catch (const format_error& e) {
      return static_cast<std::int64_t>(e.offset());
    }
  };
  const auto at = [&](const char* part) { return static_cast<std::int64_t>(text.find(part)); };
  // Repairs the first fault, and then each next one.
  std::string state = text;
  const auto repair = [&](const char* fault, const char* by) {
    state.replace(state.find(fault), std::string(fault).size(), by);
  };
  EXPECT_EQ(byte_of(state), at("\"2\""));
  repair("\"2\"", "002");
  EXPECT_EQ(byte_of(state), at("\"2\"") + 1) << "a leading zero is not JSON";
  repair("002", "  2");
  EXPECT_EQ(byte_of(state), at("\"tokens\""));
  repair("-1", " 1");
  EXPECT_EQ(byte_of(state), at("{\"weights\"")) << "there is no \"sources\"";
  repair("[1.0]", "[]   ");
  EXPECT_EQ(byte_of(state), at("{\"skip_samples\""));
  repair("[1, 2]", "[1, 2], \"why\": \"spike\"");
  EXPECT_EQ(byte_of(state), -1);
  EXPECT_EQ(byte_of(" {}"), 1);
}

// Sets each option to a value out of range. The error names the option.
TEST(State, RefusesWhatNoRunHas) {
  const auto refused = [](const std::function<void(run_state&)>& change) {
    run_state s = example_state();
    change(s);
    return refusal_of(write_state(s));
  };
  EXPECT_EQ(refused([](run_state& s) { s.order = "megatorn"; }),
            "order of the state is \"megatorn\", expected instant, megatron or stored "
            "(at byte 22)");
  EXPECT_THAT(refused([](run_state& s) { s.packing = "first_fit"; }), HasSubstr("packing of the"));
  EXPECT_THAT(refused([](run_state& s) { s.split_part = "dev"; }), HasSubstr("split_part of the"));
  EXPECT_THAT(refused([](run_state& s) { s.sampler = ""; }), HasSubstr("sampler of the state"));
  EXPECT_THAT(refused([](run_state& s) { s.blend_rounding = "fma"; }),
              HasSubstr("blend_rounding of the state is \"fma\", expected twice or fused"));
  EXPECT_THAT(refused([](run_state& s) { s.seq_len = -1; }),
              HasSubstr("seq_len of the state is -1, expected 0 to 2^62"));
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
  EXPECT_THAT(refused([](run_state& s) { s.schedule[1].weights.pop_back(); }),
              HasSubstr("schedule[1].sources of the state has 2 entries, but weights has 1, "
                        "expected one for each"));
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
  run_state s = example_state();
  s.surplus = std::nan("");
  EXPECT_THAT(fault([&] { (void)write_state(s); }), HasSubstr("surplus is not a finite number"));
  s = example_state();
  s.data[0].prefix = "\xff";
  EXPECT_THAT(fault([&] { (void)write_state(s); }), HasSubstr("prefix is not UTF-8"));
}

}  // namespace
}  // namespace millrace::dataset
