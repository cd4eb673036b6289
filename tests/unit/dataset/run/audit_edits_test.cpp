// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/instant_order.hpp>
#include <millrace/dataset/where.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/dataset/run/audited_run.hpp"

namespace millrace::dataset {
namespace {

using audited::audited_ranks;
using audited::damaged;
using audited::expect_sound;
using audited::left_out_in;
using audited::token_counts;
using testing::SizeIs;

using EditedAudit = audited::audit_fixture;

/// Returns the stream of a run with edits. Each step has 4 samples.
std::shared_ptr<const edited_stream> stream_of(const run& order, const std::vector<edit>& edits) {
  return std::make_shared<const edited_stream>(edited_positions(order, edits, batch_steps(4)));
}

/// Token counts of one round of a run with edits. They are computed only from positions.
struct edited_counts {
  token_counts served;   // inputs in the steps, including replays
  token_counts dropped;  // inputs that edits drop, anywhere in the run
  token_counts again;    // inputs in the steps that are replays
};

/// Returns the expected counts of an audit with edits. Adds up all served samples and all positions
/// that are never served.
std::map<std::int64_t, edited_counts> count_edited(const run& order, const edited_stream& stream,
                                                   std::int64_t begin, std::int64_t end) {
  std::map<std::int64_t, edited_counts> all;  // by source; one round each
  const auto add = [&](std::int64_t position, token_counts edited_counts::*to) {
    const source_sample sample = order.at(position);
    audited::count_inputs(order, sample, all[sample.source].*to);
  };
  for (std::int64_t n = begin; n < end; ++n) {
    add(stream[n], &edited_counts::served);
    if (stream.served(stream[n]) != n) add(stream[n], &edited_counts::again);
  }
  for (std::int64_t p = 0; p < order.end(); ++p) {
    if (!stream.served(p)) add(p, &edited_counts::dropped);
  }
  return all;
}

std::int64_t sum(const token_counts& counts) {
  std::int64_t all = 0;
  for (const std::int64_t n : counts) all += n;
  return all;
}

TEST_F(EditedAudit, AccountsForWhatEditsDropAndReplay) {
  const auto web = stored("web", 40);
  const auto code = stored("code", 40);
  const std::vector<edit> edits = {
      {.first = 3, .last = 9, .why = "spike"},
      {.kind = edit_kind::replay, .first = 0, .last = 3, .at = 14, .why = "again"},
      {.kind = edit_kind::replay, .first = 1, .last = 2, .at = 20, .why = "and again"},
      {.kind = edit_kind::block,
       .unit = edit_unit::documents,
       .first = 4,
       .last = 12,
       .source = code.string(),
       .why = "leaked"}};
  const auto check = [&](const auto& order, std::int64_t first, std::int64_t last) {
    const auto shared = stream_of(order, edits);
    const edited_stream& stream = *shared;
    const sampler ranks = audited_ranks(order, shared);
    const auto ledgers = audit_run(order, ranks, first, last);
    const auto expected = count_edited(order, stream, 4 * first, 4 * last);
    const auto in_parts = audit_run(order, ranks, first, last, {.most_changes = 10});
    ASSERT_EQ(ledgers.size(), expected.size());
    ASSERT_EQ(in_parts.size(), expected.size());
    expect_sound(ledgers);
    std::map<std::string, std::int64_t> whys;
    for (std::size_t i = 0; i < ledgers.size(); ++i) {
      const audit_ledger& each = ledgers[i];
      const edited_counts& counts = expected.at(each.source);
      std::int64_t replayed = 0;
      for (const auto& [why, tokens] : each.replayed) {
        replayed += tokens;
        whys[why] += tokens;
      }
      std::int64_t dropped = 0;
      for (const auto& [why, tokens] : each.left_out) {
        if (!why.starts_with("edit ")) continue;
        dropped += tokens;
        whys[why] += tokens;
      }
      EXPECT_EQ(each.served + replayed, sum(counts.served));
      EXPECT_EQ(replayed, sum(counts.again));
      EXPECT_EQ(dropped, sum(counts.dropped));
      EXPECT_EQ(each.served + each.not_in_steps + left_out_in(each) + each.holes,
                each.tokens * each.round.times);
      EXPECT_EQ(in_parts[i].served, each.served);
      EXPECT_EQ(in_parts[i].left_out, each.left_out);
      EXPECT_EQ(in_parts[i].replayed, each.replayed);
    }
    EXPECT_EQ(whys["edit 0, skip_samples: spike"], 6 * 10);
    const auto kept = [&](std::int64_t position) { return stream.served(position) ? 10 : 0; };
    if (first == 0) {
      EXPECT_EQ(whys["edit 1, replay_samples: again"], kept(0) + kept(1) + kept(2));
    }
    EXPECT_EQ(whys["edit 2, replay_samples: and again"], kept(1));
    EXPECT_GT(whys["edit 3, block_documents: leaked"], 0);
  };
  const auto steps_of = [&](const run& order) {
    return stream_of(order, edits)->served_before(order.end()) / 4;
  };
  const auto megatron = test::megatron_run_of({web, code}, 10, "1", 72);
  check(megatron, 0, steps_of(megatron));
  check(megatron, 1, 8);  // the steps replay samples of other steps
  const auto instant = test::instant_run_of({web, code}, 10, 4, 60);
  ASSERT_LT(instant.order().blend().taken(1, 60), instant.order().windows(1).windows_per_epoch());
  check(instant, 0, steps_of(instant));
}

// The last round is reported even if edits drop the whole round.
TEST_F(EditedAudit, TellsOfARoundThatEditsDropWhole) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, {});
  const std::int64_t windows = order.order().windows(0).windows_per_epoch();
  const std::vector<edit> edits = {{.first = windows, .last = 2 * windows, .why = "spike"}};
  const sampler ranks = audited_ranks(order, stream_of(order, edits));
  const auto ledgers = audit_run(order, ranks, 0, windows / 4 + 3);
  expect_sound(ledgers);
  ASSERT_THAT(ledgers, SizeIs(3));
  EXPECT_EQ(ledgers[1].round.name, "epoch 1");
  EXPECT_EQ(ledgers[1].served, 0);
  EXPECT_EQ(ledgers[1].samples, 0);
  EXPECT_EQ(ledgers[1].left_out.back(),
            explained_tokens("edit 0, skip_samples: spike", 9 * windows));
  EXPECT_THAT(audit_run(order, ranks, 0, 2), SizeIs(1)) << "steps long before it";
  EXPECT_THAT(audit_run(order, ranks, windows / 4 + 1, windows / 4 + 2), SizeIs(1));
}

TEST_F(EditedAudit, FindsADuplicateAndAHoleAmongEdits) {
  const std::vector<edit> edits = {
      {.first = 1, .last = 3, .why = "spike"},
      {.kind = edit_kind::replay, .first = 4, .last = 6, .at = 8, .why = "again"}};
  const auto find = [&](const auto& good) {
    // Positions served: 0 3 4 5 | 6 7 4 5 | 8 9 10 11
    const sampler ranks = audited_ranks(good, stream_of(good, edits));
    damaged bad(good);
    expect_sound(audit_run(bad, ranks, 0, 3));
    const auto expect_both = [&](std::int64_t at, std::int64_t other, std::int64_t times) {
      bad.instead = {{at, other}};
      const auto ledgers = audit_run(bad, ranks, 0, 3);
      ASSERT_THAT(ledgers, SizeIs(1));
      EXPECT_EQ(ledgers[0].repeated, times * good.seq_len()) << at << " as " << other;
      EXPECT_EQ(ledgers[0].holes, times * good.seq_len()) << at << " as " << other;
    };
    expect_both(7, 6, 1);   // no edit touches either sample
    expect_both(4, 0, 2);   // replayed, so it counts both times
    expect_both(9, 5, 1);   // a replayed sample, served a third time
    expect_both(3, 13, 1);  // a sample of other steps
    expect_both(7, 2, 1);   // a sample that an edit drops
    bad.instead.clear();
    damaged short_one(good);
    short_one.cut = good.at(4);  // replayed, so it counts both times
    const auto of_short = audit_run(short_one, ranks, 0, 3);
    ASSERT_THAT(of_short, SizeIs(1));
    EXPECT_GT(of_short[0].holes, 0);
  };
  find(test::instant_run_of({stored("web", 30)}, 9, 4, {}));
  find(test::megatron_run_of({stored("code", 30)}, 9, "1,0,0", {}));
}

}  // namespace
}  // namespace millrace::dataset
