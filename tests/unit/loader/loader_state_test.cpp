// SPDX-License-Identifier: Apache-2.0
//
// Tests the state that a loader saves, and runs that resume from a state.
#include <millrace/loader/detail/state.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class LoaderState : public testing::Test {
 protected:
  test::any_run run(test::run_kind kind, bool blend = true) const {
    return test::run_of({.kind = kind, .blend = blend}, prefixes_);
  }
  static loader_options options() {
    return {.batch_size = 2, .global_batch_size = 8, .fields = test::all_fields};
  }
  static std::string refusal(batch_loader& loader, const std::string& state) {
    try {
      loader.load_state(state);
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  }

  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_ = test::store_three(folder_, 3);
};

TEST_F(LoaderState, SaysOrderDataAndWhatIsConsumed) {
  const auto loader = test::loader_of(run(test::run_kind::instant), options());
  (void)loader->next();
  const dataset::run_state state = loader->state();
  EXPECT_EQ(state.order, "instant");
  EXPECT_EQ(state.seed, 1234);
  EXPECT_EQ(state.seq_len, 16);
  EXPECT_EQ(state.global_batch, 8);
  EXPECT_EQ(state.consumed_samples, 2);
  ASSERT_EQ(state.data.size(), 3);
  const dataset::indexed_dataset data(prefixes_[1]);
  EXPECT_EQ(state.data[1].prefix, prefixes_[1].string());
  EXPECT_EQ(state.data[1].weight, 2);
  EXPECT_EQ(state.data[1].tokens, data.token_count());
  EXPECT_EQ(state.data[1].sequences, data.sequence_count());
  EXPECT_EQ(state.data[1].documents, data.document_count());
  EXPECT_EQ(state.data[1].bin_bytes, static_cast<std::int64_t>(data.bin_size_bytes()));
  EXPECT_EQ(state.data[1].idx_bytes, static_cast<std::int64_t>(data.idx_size_bytes()));
  EXPECT_EQ(dataset::parse_state(dataset::write_state(state)), state);
}

TEST_F(LoaderState, SaysHowMegatronsOrderWasBuilt) {
  const auto loader = test::loader_of(run(test::run_kind::megatron), options());
  const dataset::run_state state = loader->state();
  EXPECT_EQ(state.order, "megatron");
  EXPECT_EQ(state.split, "90,7,3");
  EXPECT_EQ(state.split_part, "train");
  EXPECT_EQ(state.surplus, 0.5);
  ASSERT_EQ(state.samples.size(), 3);
  EXPECT_GE(state.samples[0], 96);
  EXPECT_NEAR(state.data[2].weight, 0.5, 1e-12);
}

TEST_F(LoaderState, SaysPackingAndTokenizer) {
  test::write_text(folder_ / "a.meta",
                   R"({"millrace_meta": 1, "tokenizer": {"fingerprint": "abc", "vocab_size": 9}})");
  const auto loader = test::loader_of(run(test::run_kind::packed), options());
  EXPECT_EQ(loader->state().packing, "best_fit");
  EXPECT_FALSE(loader->state().extra_token);
  EXPECT_EQ(loader->state().tokenizer, "abc");
}

TEST_F(LoaderState, GoesOnWhereverTheLoaderIs) {
  const auto loader = test::loader_of(run(test::run_kind::instant), options());
  const auto kept = loader->next();
  const test::served_row first = test::row_of(*kept, 0);
  (void)loader->next();
  const std::string state = dataset::write_state(loader->state());
  const auto third = loader->next();
  for (int i = 0; i < 5; ++i) (void)loader->next();
  loader->load_state(state);
  EXPECT_EQ(loader->consumed_samples(), 4);
  const auto again = loader->next();
  EXPECT_EQ(test::row_of(*again, 1), test::row_of(*third, 1));
  EXPECT_EQ(again->first_sample(), 4);
  EXPECT_EQ(test::row_of(*kept, 0), first) << "a batch that is held has changed";
}

TEST_F(LoaderState, RefusesAnotherRunAndStaysAsItWas) {
  const auto loader = test::loader_of(run(test::run_kind::instant), options());
  dataset::run_state state = loader->state();
  (void)loader->next();
  state.seed = 7;
  EXPECT_THAT(refusal(*loader, dataset::write_state(state)),
              AllOf(HasSubstr("seed is 1234, but was 7"), HasSubstr("allow \"seed\"")));
  state.seed = 1234;
  state.data[0].tokens += 1;
  EXPECT_THAT(refusal(*loader, dataset::write_state(state)), HasSubstr("its tokens is"));
  EXPECT_EQ(loader->consumed_samples(), 2);
  EXPECT_EQ(loader->next()->first_sample(), 2);
  EXPECT_THROW(loader->load_state("{"), format_error);
  state.data[0].tokens -= 1;
  loader->load_state(dataset::write_state(state));
  EXPECT_EQ(loader->consumed_samples(), 0);
}

TEST_F(LoaderState, TakesEditsThatWereAddedSince) {
  const auto before = test::loader_of(run(test::run_kind::instant), options());
  std::vector<std::int64_t> positions;
  for (int i = 0; i < 4; ++i) (void)before->next();
  const std::string state = dataset::write_state(before->state());

  loader_options edited = options();
  edited.edits = {{.first = 10, .last = 13, .since = 8, .why = "loss spike"}};
  const auto after = test::loader_of(run(test::run_kind::instant), edited);
  after->load_state(state);
  for (int i = 0; i < 3; ++i) {
    const auto batch = after->next();
    positions.insert(positions.end(), batch->positions().begin(), batch->positions().end());
  }
  EXPECT_THAT(positions, ElementsAre(8, 9, 13, 14, 15, 16));
  EXPECT_EQ(after->micro_batches(), (96 - 3 - 8) / 2);

  edited.edits[0].since = 0;
  edited.edits[0].first = 3;
  const auto wrong = test::loader_of(run(test::run_kind::instant), edited);
  EXPECT_THAT(refusal(*wrong, state), HasSubstr("changes which samples had been served"));
}

TEST_F(LoaderState, TakesNoEditAway) {
  loader_options edited = options();
  edited.edits = {{.first = 20, .last = 40, .why = "poisoned"}};
  const auto before = test::loader_of(run(test::run_kind::instant), edited);
  for (int i = 0; i < 4; ++i) (void)before->next();
  const std::string state = dataset::write_state(before->state());
  const auto after = test::loader_of(run(test::run_kind::instant), options());
  EXPECT_THAT(refusal(*after, state), HasSubstr("edits[0] is none, but was {\"skip_samples\""));
  EXPECT_EQ(after->consumed_samples(), 0);
  after->load_state(state, {.allow = {"edits"}});
  EXPECT_EQ(after->consumed_samples(), 8);
}

TEST_F(LoaderState, KnowsEditsOfDataThatHasMoved) {
  loader_options edited = options();
  edited.edits = {{.kind = dataset::edit_kind::block,
                   .unit = dataset::edit_unit::documents,
                   .first = 12,
                   .last = 30,
                   .source = prefixes_[1].string(),
                   .why = "licence"}};
  const auto before = test::loader_of(run(test::run_kind::instant), edited);
  for (int i = 0; i < 4; ++i) (void)before->next();
  const std::string state = dataset::write_state(before->state());
  const auto next = before->next();

  const auto moved = folder_ / "elsewhere";
  std::filesystem::create_directory(moved);
  for (const char* suffix : {".bin", ".idx"}) {
    std::filesystem::rename(test::suffixed(prefixes_[1], suffix),
                            test::suffixed(moved / "b", suffix));
  }
  prefixes_[1] = moved / "b";
  edited.edits[0].source = prefixes_[1].string();
  const auto after = test::loader_of(run(test::run_kind::instant), edited);
  after->load_state(state);
  const auto again = after->next();
  EXPECT_TRUE(std::ranges::equal(again->positions(), next->positions()));
  EXPECT_EQ(test::row_of(*again, 0), test::row_of(*next, 0));
  // If edits may change, the sources of the saved edits need not exist any longer.
  dataset::run_state lost = dataset::parse_state(state);
  lost.edits[0].source = "gone";
  EXPECT_THAT(refusal(*after, dataset::write_state(lost)), HasSubstr("documents of gone"));
  after->load_state(lost, {.allow = {"edits"}});
}

// Skipped samples advance the schedule of weights, too. So a segment of the schedule that covers
// served samples must not change.
TEST_F(LoaderState, KnowsHowFarEditsHaveMovedTheSchedule) {
  const auto scheduled = [&](std::int64_t step, const loader_options& with) {
    dataset::instant_options instant;
    instant.seq_len = 16;
    instant.train_samples = 160;
    instant.first_position_of = [s = steps_of(with)](std::int64_t n) {
      return s.first_position(n);
    };
    instant.segments = {{0, {{0, 1.0}, {1, 1.0}}}, {step, {{0, 1.0}, {1, 3.0}}}};
    return std::make_unique<batch_loader>(
        dataset::instant_run({{prefixes_[0], "", {}, {}}, {prefixes_[1], "", {}, {}}}, instant),
        with);
  };
  loader_options edited = options();
  edited.edits = {{.first = 8, .last = 48, .why = "spike"}};  // skips steps 1 to 5
  const auto before = scheduled(10, edited);
  for (int i = 0; i < 12; ++i) (void)before->next();  // serves steps 0, 6 and 7
  std::string state = dataset::write_state(before->state());
  EXPECT_EQ(refusal(*scheduled(12, edited), state), "accepted");
  EXPECT_THAT(refusal(*scheduled(7, edited), state),
              HasSubstr("the run has served samples of 8 steps"));

  edited.rampup = dataset::rampup_batch{4, 4, 8};
  edited.edits.front().first = 4;  // serves step 0, then continues at position 48
  const auto ramped = scheduled(10, edited);
  for (int i = 0; i < 12; ++i) (void)ramped->next();
  state = dataset::write_state(ramped->state());
  const std::int64_t done = steps_of(edited).done_at(48 + 20);
  ASSERT_EQ(done, 10);
  EXPECT_EQ(refusal(*scheduled(done + 1, edited), state), "accepted");
  EXPECT_THAT(refusal(*scheduled(done - 1, edited), state),
              HasSubstr("samples of " + std::to_string(done) + " steps"));
}

// In every order, no served sample may contain a token of the blocked documents.
TEST_F(LoaderState, BlocksDocumentsOfEveryOrder) {
  for (const auto kind :
       {test::run_kind::megatron, test::run_kind::instant, test::run_kind::packed}) {
    SCOPED_TRACE(test::name_of(kind));
    const test::any_run all = run(kind);
    loader_options edited = options();
    edited.batch_size = 1;
    edited.edits = {{.kind = dataset::edit_kind::block,
                     .unit = dataset::edit_unit::documents,
                     .first = 12,
                     .last = 30,
                     .source = prefixes_[1].string(),
                     .why = "licence"}};
    const dataset::indexed_dataset data(prefixes_[1]);
    const std::int64_t first = data.document(12).first;
    const std::int64_t last = data.document(29).last;
    const auto holds = [&](std::int64_t position) {
      return std::visit(
          [&](const auto& each) {
            std::vector<dataset::piece> pieces;
            const dataset::source_sample sample = each.at(position);
            (void)each.pieces(sample, pieces);
            for (const dataset::piece& p : pieces) {
              if (sample.source == 1 && p.tokens > 0 && first <= p.sequence && p.sequence < last) {
                return true;
              }
            }
            return false;
          },
          all);
    };
    std::vector<std::int64_t> expected;
    for (std::int64_t p = 0; p < test::end_of(all); ++p) {
      if (!holds(p)) expected.push_back(p);
    }
    ASSERT_LT(static_cast<std::int64_t>(expected.size()), test::end_of(all));
    edited.global_batch_size = 1;
    const auto loader = test::loader_of(all, edited);
    std::vector<std::int64_t> served;
    for (const auto& batch : *loader) served.push_back(batch.positions()[0]);
    EXPECT_EQ(served, expected);
  }
}

TEST_F(LoaderState, BlocksADatasetWhereverTheBlendHasIt) {
  dataset::instant_options instant;
  instant.seq_len = 16;
  instant.train_samples = 96;
  instant.first_position_of = [](std::int64_t step) { return step * 8; };
  instant.segments = {{0, {{0, 1.0}, {1, 1.0}}}};
  const dataset::instant_run twice({{prefixes_[1], "x", {}, {}}, {prefixes_[1], "y", {}, {}}},
                                   instant);
  const dataset::indexed_dataset data(prefixes_[1]);
  const dataset::sequence_range blocked{data.document(12).first, data.document(29).last};
  loader_options edited = options();
  edited.batch_size = edited.global_batch_size = 1;
  edited.edits = {{.kind = dataset::edit_kind::block,
                   .unit = dataset::edit_unit::documents,
                   .first = 12,
                   .last = 30,
                   .source = prefixes_[1].string(),
                   .why = "licence"}};
  std::set<std::int64_t> expected;
  for (std::int64_t p = 0; p < twice.end(); ++p) expected.insert(p);
  for (std::int64_t source = 0; source < 2; ++source) {
    const auto with = twice.positions_with(source, blocked, twice.end());
    ASSERT_FALSE(with.empty());
    for (const std::int64_t p : with) expected.erase(p);
  }
  batch_loader loader(twice, edited);
  std::set<std::int64_t> served;
  for (const auto& batch : loader) served.insert(batch.positions()[0]);
  EXPECT_EQ(served, expected);
}

TEST_F(LoaderState, HoldsTheSchedulesStepsAgainstItsOwn) {
  dataset::instant_options instant;
  instant.seq_len = 16;
  instant.train_samples = 400;
  instant.first_position_of = [](std::int64_t step) { return step * 16; };
  instant.segments = {{0, {{0, 1.0}}}, {10, {{1, 1.0}}}};
  const std::vector<dataset::instant_source> sources = {{prefixes_[0], "", {}, {}},
                                                        {prefixes_[1], "", {}, {}}};
  const auto refusal_of = [&](const auto& run, const loader_options& with) -> std::string {
    try {
      const batch_loader loader(run, with);
    } catch (const config_error& e) {
      return e.what();
    }
    return "accepted";
  };
  const dataset::instant_run run(sources, instant);
  const dataset::packed_run packed(sources, instant, {});
  const std::string found =
      "from step 10 on begins at sample 160 of the run, but step 10 of the loader at sample 80, of "
      "8: expected the global_batch_size";
  EXPECT_THAT(refusal_of(run, options()), HasSubstr(found));
  EXPECT_THAT(refusal_of(packed, options()), HasSubstr(found));
  loader_options same = options();
  same.global_batch_size = 16;
  EXPECT_EQ(refusal_of(run, same), "accepted");
  EXPECT_EQ(refusal_of(packed, same), "accepted");
  same.rampup = dataset::rampup_batch{8, 8, 32};
  EXPECT_THAT(refusal_of(run, same), HasSubstr("from step 10 on begins at sample 160"));
  loader_options cyclic = options();
  cyclic.sampler = sampler_type::cyclic;
  EXPECT_EQ(refusal_of(run, cyclic), "accepted") << "it has another order";
}

TEST_F(LoaderState, RefusesToBlockWhatIsNotThere) {
  loader_options edited = options();
  edited.edits = {{.kind = dataset::edit_kind::block,
                   .unit = dataset::edit_unit::documents,
                   .first = 0,
                   .last = 1,
                   .source = "elsewhere",
                   .why = "?"}};
  try {
    (void)test::loader_of(run(test::run_kind::instant), edited);
    FAIL() << "accepted";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), HasSubstr("expected a prefix of one of the 3 datasets"));
  }
}

}  // namespace
}  // namespace millrace::loader
