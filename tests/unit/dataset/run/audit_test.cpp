// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/audit.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/run/cyclic_run.hpp>
#include <millrace/dataset/run/edited_run.hpp>

#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const topology audited_ranks(2, 2, 4);

std::int64_t left_out_in(const audit_ledger& ledger) {
  std::int64_t sum = 0;
  for (const auto& [why, tokens] : ledger.left_out) sum += tokens;
  return sum;
}

/// How often each stored token of a source is an input in a round, one by one.
using token_counts = std::vector<std::int64_t>;

template <class Order>
std::map<std::pair<std::int64_t, std::int64_t>, token_counts> enumerate(const Order& order,
                                                                        std::int64_t first,
                                                                        std::int64_t last) {
  std::map<std::pair<std::int64_t, std::int64_t>, token_counts> all;
  for (std::int64_t position = first; position < last; ++position) {
    const source_sample sample = order.at(position);
    const indexed_dataset data(order.prefix(sample.source));
    auto& counts = all[{sample.source, order.round_of(sample.source, sample.k).first}];
    counts.resize(static_cast<std::size_t>(data.token_count()));
    std::vector<piece> pieces;
    (void)order.pieces(sample, pieces);
    std::int64_t inputs = order.seq_len();
    for (const piece& p : pieces) {
      for (std::int64_t t = 0; t < p.tokens && inputs > 0; ++t, --inputs) {
        // The n-th token of these datasets is n.
        ++counts[static_cast<std::size_t>(data.sequence(p.sequence)[p.first + t])];
      }
    }
  }
  return all;
}

template <class Order>
std::vector<audit_ledger> expect_counts(const Order& order, std::int64_t first, std::int64_t last,
                                        bool has_labels = true) {
  const auto ledgers = audit_run(order, audited_ranks, first, last);
  const auto counted = enumerate(order, 4 * first, 4 * last);
  EXPECT_EQ(std::ranges::count_if(ledgers, [](const auto& each) { return each.samples > 0; }),
            std::ssize(counted));
  for (const audit_ledger& each : ledgers) {
    const auto found = counted.find({each.source, each.round.first});
    if (found == counted.end()) {  // it is there for what was dropped of it
      EXPECT_EQ(each.samples, 0);
      EXPECT_GT(each.left_out.back().second, 0);
      EXPECT_THAT(each.left_out.back().first, HasSubstr("cyclic: "));
      continue;
    }
    std::int64_t served = 0;
    std::int64_t repeated = 0;
    for (const std::int64_t n : found->second) {
      served += std::min(n, each.round.times);
      repeated += std::max<std::int64_t>(0, n - each.round.times);
    }
    EXPECT_EQ(each.served, served);
    EXPECT_EQ(each.repeated, repeated);
    EXPECT_EQ(each.tokens, static_cast<std::int64_t>(found->second.size()));
    EXPECT_EQ(each.served + each.not_in_steps + left_out_in(each) + each.holes,
              each.tokens * each.round.times);
    EXPECT_EQ(each.label_only + each.padding + each.served + each.repeated,
              each.samples * (order.seq_len() + (has_labels ? 1 : 0)));
  }
  // Part by part it comes to the same, faults at the ends of parts aside.
  auto in_parts = audit_run(order, audited_ranks, first, last, {.most_changes = 10});
  EXPECT_EQ(in_parts.size(), ledgers.size());
  for (std::size_t i = 0; i < std::min(in_parts.size(), ledgers.size()); ++i) {
    EXPECT_EQ(in_parts[i].served, ledgers[i].served);
    EXPECT_EQ(in_parts[i].not_in_steps, ledgers[i].not_in_steps);
    EXPECT_EQ(in_parts[i].left_out, ledgers[i].left_out);
    EXPECT_EQ(in_parts[i].holes, ledgers[i].holes);
    EXPECT_EQ(in_parts[i].repeated, ledgers[i].repeated);
    EXPECT_EQ(in_parts[i].samples, ledgers[i].samples);
    EXPECT_EQ(in_parts[i].label_only, ledgers[i].label_only);
  }
  return ledgers;
}

void expect_sound(const std::vector<audit_ledger>& ledgers) {
  for (const audit_ledger& each : ledgers) {
    EXPECT_TRUE(each.sound()) << each.holes << " missing, " << each.repeated << " repeated";
    EXPECT_THAT(each.faults, IsEmpty());
  }
}

/// Serves at some positions what others serve, and cuts the last input off one sample.
template <class Order>
class damaged : public Order {
 public:
  explicit damaged(Order good) : Order(std::move(good)) {}
  std::map<std::int64_t, std::int64_t> instead;  // position, the one whose sample it has
  std::optional<source_sample> cut;

  source_sample at(std::int64_t position) const {
    const auto found = instead.find(position);
    return Order::at(found == instead.end() ? position : found->second);
  }
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    const std::int64_t padding = Order::pieces(sample, out);
    if (sample != cut) return padding;
    while (out.back().tokens == 0) out.pop_back();
    --out.back().tokens;  // the last label
    while (out.back().tokens == 0) out.pop_back();
    --out.back().tokens;
    return padding;
  }
};

class Audit : public testing::Test {
 protected:
  std::filesystem::path stored(const std::string& name, int documents) {
    return test::store_documents(folder_ / name, random_, documents);
  }

  template <class Order>
  static void expect_found(const Order& good) {
    damaged<Order> bad(good);
    expect_sound(expect_counts(bad, 0, 3));
    bad.instead[5] = 4;
    const auto ledgers = expect_counts(bad, 0, 3);
    ASSERT_THAT(ledgers, SizeIs(1));
    EXPECT_EQ(ledgers[0].repeated, good.seq_len());
    EXPECT_EQ(ledgers[0].holes, good.seq_len());
    // Told in runs: together they are both samples.
    std::int64_t twice = 0;
    std::int64_t never = 0;
    for (const audit_fault& each : ledgers[0].faults) {
      (each.times > each.expected ? twice : never) += each.tokens;
    }
    EXPECT_EQ(twice, good.seq_len());
    EXPECT_EQ(never, good.seq_len());
    std::vector<piece> pieces;
    (void)good.pieces(good.at(4), pieces);
    EXPECT_TRUE(std::ranges::any_of(ledgers[0].faults, [&](const audit_fault& each) {
      return each.times == 2 && std::ranges::any_of(pieces, [&](const piece& p) {
               return p.sequence == each.sequence && p.first <= each.first &&
                      each.first < p.first + p.tokens;
             });
    }));

    damaged<Order> short_one(good);
    short_one.cut = good.at(6);
    const auto of_short = audit_run(short_one, audited_ranks, 0, 3);
    ASSERT_THAT(of_short, SizeIs(1));
    EXPECT_EQ(of_short[0].holes, 1);
    EXPECT_EQ(of_short[0].repeated, 0);
    ASSERT_THAT(of_short[0].faults, SizeIs(1));
    EXPECT_EQ(of_short[0].faults[0].tokens, 1);
    EXPECT_EQ(of_short[0].faults[0].times, 0);
  }

  test::temp_folder folder_;
  std::mt19937 random_{11};
};

TEST_F(Audit, CountsWhatMegatronServes) {
  for (int round = 0; round < 5; ++round) {
    const auto web = stored("web" + std::to_string(round), 30);
    for (const std::optional<std::int64_t> samples : {std::optional<std::int64_t>(), {90}}) {
      const auto order = test::megatron_run_of({web}, 7 + round, "8,1,1", samples);
      const std::int64_t steps = order.end() / 4;
      expect_sound(expect_counts(order, 0, steps));
      expect_sound(expect_counts(order, 1, 4));
    }
  }
}

TEST_F(Audit, CountsWhatInstantServes) {
  for (int round = 0; round < 5; ++round) {
    const auto web = stored("web" + std::to_string(round), 30);
    const auto order = test::instant_run_of({web}, 7 + round, 4, {});
    const auto ledgers = expect_counts(order, 0, 40);
    EXPECT_GT(ledgers.size(), 2U);
    EXPECT_EQ(ledgers.front().not_in_steps, 0);
    expect_sound(ledgers);
    expect_sound(expect_counts(order, 3, 30));
  }
}

TEST_F(Audit, CountsWhatBlendsServe) {
  const auto web = stored("web", 25);
  const auto code = stored("code", 12);
  expect_sound(expect_counts(test::megatron_run_of({web, code}, 9, "9,1,0", 72), 0, 18));
  expect_sound(expect_counts(test::instant_run_of({web, code}, 9, 4, 72), 0, 18));
  expect_sound(expect_counts(test::instant_run_of({web, code}, 9, 4, 72), 5, 11));
}

TEST_F(Audit, CountsWhatPackedRowsServe) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  for (const std::int64_t pad : {1, 4}) {
    const auto alone = test::packed_run_of({web}, 32, 4, {}, pad);
    const auto ledgers = expect_counts(alone, 0, 2 * alone.info(0).rows / 4, false);
    expect_sound(ledgers);
    EXPECT_EQ(ledgers[0].served, ledgers[0].tokens) << "all of the first epoch";
    EXPECT_GT(ledgers[0].padding, 0);
    expect_sound(expect_counts(test::packed_run_of({web, code}, 32, 4, 40, pad), 3, 8, false));
  }
}

TEST_F(Audit, CountsWhatTheSamplerCyclicServes) {
  const auto web = stored("web", 30);
  const auto code = stored("code", 12);
  const data_share share{2, 2, 0};  // as audited_ranks
  for (const bool sharded : {true, false}) {
    for (const std::int64_t samples : {32, 33, 34, 35}) {
      const auto blend = test::instant_run_of({web, code}, 9, 4, samples);
      const cyclic_run cyclic(blend, share, sharded);
      const auto ledgers = expect_counts(cyclic, 0, 8);
      expect_sound(ledgers);
      std::int64_t passed_over = 0;
      for (const audit_ledger& each : ledgers) {
        for (const auto& [why, tokens] : each.left_out) {
          if (why.starts_with("cyclic: ")) passed_over += tokens;
        }
      }
      EXPECT_EQ(passed_over, 9 * (samples % 4)) << "of the first pass";
      expect_sound(expect_counts(cyclic, 3, 27));
    }
    const auto megatron = test::megatron_run_of({web}, 9, "8,1,1", 45);
    expect_sound(expect_counts(cyclic_run(megatron, share, sharded), 0, 33));
    const auto packed = test::packed_run_of({web, code}, 32, 4, 30, 4);
    expect_sound(expect_counts(cyclic_run(packed, share, sharded), 0, 20, false));
  }
}

// Rank 0 has a batch more than rank 1, and goes on with the next pass before it, and without its
// first batch.
TEST_F(Audit, CountsRanksOfTheSamplerCyclicThatAreAhead) {
  const auto web = stored("web", 30);
  for (const std::int64_t samples : {3, 11}) {
    const auto order = test::instant_run_of({web}, 9, 2, samples);
    const cyclic_run cyclic(order, data_share{1, 2, 0}, false);
    const auto ledgers = audit_run(cyclic, topology(2, 1, 2), 0, 20);
    expect_sound(ledgers);
    std::int64_t passed_over = 0;
    for (const audit_ledger& each : ledgers) {
      for (const auto& [why, tokens] : each.left_out) {
        if (why.starts_with("cyclic: ")) passed_over += tokens;
      }
    }
    EXPECT_GT(passed_over, 0);
  }
}

TEST_F(Audit, CountsStepsThatGrow) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, 60);
  const topology ranks(2, 2, 12, rampup_batch{4, 4, 24});
  const auto ledgers = audit_run(order, ranks, 1, ranks.whole_steps(60));
  expect_sound(ledgers);
  std::int64_t samples = 0;
  for (const audit_ledger& each : ledgers) samples += each.samples;
  EXPECT_EQ(samples, ranks.first_position(ranks.whole_steps(60)) - 4);
}

TEST_F(Audit, SaysWhyTokensAreLeftOut) {
  const auto web = stored("web", 30);
  const auto megatron = test::megatron_run_of({web}, 10, "7,2,1", {});
  const auto ledgers = audit_run(megatron, audited_ranks, 0, megatron.end() / 4);
  ASSERT_THAT(ledgers, SizeIs(1));
  ASSERT_THAT(ledgers[0].left_out, SizeIs(2));
  EXPECT_EQ(ledgers[0].left_out[0].first, "of other parts of --split");
  EXPECT_GT(ledgers[0].left_out[0].second, 0);
  EXPECT_EQ(ledgers[0].left_out[1].first, "behind the last sample");
  EXPECT_EQ(ledgers[0].left_out[1].second, megatron.plan(0).tokens() - 10 * megatron.end());
  EXPECT_EQ(ledgers[0].not_in_steps, 10 * (megatron.end() % 4));
}

TEST_F(Audit, FindsAPlantedDuplicateAndAPlantedHole) {
  expect_found(test::instant_run_of({stored("web", 30)}, 9, 4, {}));
  expect_found(test::megatron_run_of({stored("code", 30)}, 9, "1,0,0", {}));
  const auto passed = test::megatron_run_of({stored("cyclic", 30)}, 9, "1,0,0", {});
  expect_found(cyclic_run(passed, data_share{2, 2, 0}));
}

TEST_F(Audit, FindsAPackedRowThatIsServedTwice) {
  damaged bad(test::packed_run_of({stored("web", 60)}, 32, 4, {}));
  const auto tokens_of = [&](std::int64_t position) {
    std::vector<piece> pieces;
    return bad.seq_len() - bad.pieces(bad.at(position), pieces);
  };
  bad.instead[5] = 4;
  const auto ledgers = expect_counts(bad, 0, 3, false);
  ASSERT_THAT(ledgers, SizeIs(1));
  EXPECT_EQ(ledgers[0].repeated, tokens_of(4));
  bad.instead.clear();
  EXPECT_EQ(ledgers[0].holes, tokens_of(5));
}

/// What edits make of a round, token by token, out of positions alone.
struct edited_counts {
  token_counts served;   // in the steps, replays counted in
  token_counts dropped;  // by edits, anywhere
  token_counts again;    // beside their turn, in the steps
};

/// The naive side of an audit with edits: each served sample, and each position that is never one.
template <class Order>
std::map<std::int64_t, edited_counts> count_edited(const Order& order, const edited_stream& stream,
                                                   std::int64_t begin, std::int64_t end) {
  std::map<std::int64_t, edited_counts> all;  // by source: of one round each
  const auto add = [&](std::int64_t position, token_counts edited_counts::*to) {
    const source_sample sample = order.at(position);
    const indexed_dataset data(order.prefix(sample.source));
    auto& counts = all[sample.source].*to;
    counts.resize(static_cast<std::size_t>(data.token_count()));
    std::vector<piece> pieces;
    (void)order.pieces(sample, pieces);
    std::int64_t inputs = order.seq_len();
    for (const piece& p : pieces) {
      for (std::int64_t t = 0; t < p.tokens && inputs > 0; ++t, --inputs) {
        ++counts[static_cast<std::size_t>(data.sequence(p.sequence)[p.first + t])];
      }
    }
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

TEST_F(Audit, AccountsForWhatEditsDropAndReplay) {
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
    const auto stream = stream_of(
        order, edits, [](std::int64_t step) { return step * 4; }, order.end());
    const edited_run run(order, stream, edits);
    const auto ledgers = audit_run(run, audited_ranks, first, last);
    const auto expected = count_edited(order, stream, 4 * first, 4 * last);
    const auto in_parts = audit_run(run, audited_ranks, first, last, {.most_changes = 10});
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
  const auto steps_of = [&](const auto& order) {
    const auto stream = stream_of(
        order, edits, [](std::int64_t step) { return step * 4; }, order.end());
    return edited_run(order, stream).end() / 4;
  };
  const auto megatron = test::megatron_run_of({web, code}, 10, "1", 72);
  check(megatron, 0, steps_of(megatron));
  check(megatron, 1, 8);  // replays without their first turn
  const auto instant = test::instant_run_of({web, code}, 10, 4, 60);
  ASSERT_LT(instant.order().blend().taken(1, 60), instant.order().windows(1).windows_per_epoch());
  check(instant, 0, steps_of(instant));
}

// Not even its last round goes by without a word, where edits keep all of it out.
TEST_F(Audit, TellsOfARoundThatEditsDropWhole) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, {});
  const std::int64_t windows = order.order().windows(0).windows_per_epoch();
  const std::vector<edit> edits = {{.first = windows, .last = 2 * windows, .why = "spike"}};
  const auto stream = stream_of(
      order, edits, [](std::int64_t step) { return step * 4; }, order.end());
  const edited_run run(order, stream, edits);
  const auto ledgers = audit_run(run, audited_ranks, 0, windows / 4 + 3);
  expect_sound(ledgers);
  ASSERT_THAT(ledgers, SizeIs(3));
  EXPECT_EQ(ledgers[1].round.name, "epoch 1");
  EXPECT_EQ(ledgers[1].served, 0);
  EXPECT_EQ(ledgers[1].samples, 0);
  EXPECT_EQ(ledgers[1].left_out.back(),
            explained_tokens("edit 0, skip_samples: spike", 9 * windows));
  EXPECT_THAT(audit_run(run, audited_ranks, 0, 2), SizeIs(1)) << "steps long before it";
  EXPECT_THAT(audit_run(run, audited_ranks, windows / 4 + 1, windows / 4 + 2), SizeIs(1));
}

/// Serves another sample at position 7.
template <class Order>
class serves_what_is_skipped : public edited_run<Order> {
 public:
  serves_what_is_skipped(const edited_run<Order>& run, const source_sample& sample)
      : edited_run<Order>(run), sample_(sample) {}
  source_sample at(std::int64_t n) const { return n == 7 ? sample_ : edited_run<Order>::at(n); }

 private:
  source_sample sample_;
};

TEST_F(Audit, FindsADuplicateAndAHoleAmongEdits) {
  const std::vector<edit> edits = {
      {.first = 1, .last = 3, .why = "spike"},
      {.kind = edit_kind::replay, .first = 4, .last = 6, .at = 8, .why = "again"}};
  const auto find = [&](const auto& order) {
    const auto stream = stream_of(
        order, edits, [](std::int64_t step) { return step * 4; }, order.end());
    const edited_run good(order, stream, edits);  // 0 3 4 5 6 7 4 5 8 9 10 11
    damaged bad(good);
    expect_sound(audit_run(bad, audited_ranks, 0, 3));
    const auto expect_both = [&](std::int64_t at, std::int64_t other) {
      bad.instead = {{at, other}};
      const auto ledgers = audit_run(bad, audited_ranks, 0, 3);
      ASSERT_THAT(ledgers, SizeIs(1));
      EXPECT_EQ(ledgers[0].repeated, order.seq_len()) << at << " as " << other;
      EXPECT_EQ(ledgers[0].holes, order.seq_len()) << at << " as " << other;
    };
    expect_both(5, 4);   // a sample of no edit, in place of another
    expect_both(6, 1);   // in place of a replay
    expect_both(9, 2);   // a third time what is replayed
    expect_both(1, 13);  // what other steps serve
    bad.instead.clear();
    damaged short_one(good);
    short_one.cut = good.at(6);  // replayed: both times
    const auto of_short = audit_run(short_one, audited_ranks, 0, 3);
    ASSERT_THAT(of_short, SizeIs(1));
    EXPECT_GT(of_short[0].holes, 0);

    // What an edit drops is not to be served.
    const auto of_skipped =
        audit_run(serves_what_is_skipped(good, order.at(2)), audited_ranks, 0, 3);
    ASSERT_THAT(of_skipped, SizeIs(1));
    EXPECT_EQ(of_skipped[0].repeated, order.seq_len());
    EXPECT_EQ(of_skipped[0].holes, order.seq_len());
  };
  find(test::instant_run_of({stored("web", 30)}, 9, 4, {}));
  find(test::megatron_run_of({stored("code", 30)}, 9, "1,0,0", {}));
}

TEST_F(Audit, RefusesStepsThatAreNotThere) {
  const auto order = test::instant_run_of({stored("web", 30)}, 9, 4, 18);
  for (const auto& [first, last] : {std::pair(0, 5), {2, 2}, {-1, 2}}) {
    try {
      (void)audit_run(order, audited_ranks, first, last);
      ADD_FAILURE() << first << " to " << last;
    } catch (const config_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("expected two that ascend in 0 to 4, the whole steps"));
    }
  }
}

TEST(Coverage, ForgetsWhereRunsMeet) {
  coverage counted;
  for (std::int64_t i = 0; i < 100000; ++i) {
    const std::int64_t shuffled = i * 7919 % 100000;
    counted.add(10 * shuffled, 10 * shuffled + 10);
  }
  EXPECT_EQ(counted.tokens(), 1000000);
  ASSERT_THAT(counted.changes(), SizeIs(2));
  EXPECT_EQ(counted.changes()[1].at, 1000000);
  EXPECT_EQ(counted.changes()[0].change, 1);
}

}  // namespace
}  // namespace millrace::dataset
