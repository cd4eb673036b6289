// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/run/edited_stream.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/where.hpp>

#include "unit/dataset/run/stored_run.hpp"

/// Helpers to test audits: token counts that are computed one token at a time, and orders with
/// planted damage.
namespace millrace::dataset::audited {

/// Returns a sampler for two ranks. Each rank has two rows per micro-batch, and a step is one
/// micro-batch.
inline sampler audited_ranks(const run& order,
                             std::shared_ptr<const edited_stream> edits = nullptr) {
  return sampler(order.end(), {.batch_size = 2, .world_size = 2}, std::move(edits));
}

inline std::int64_t left_out_in(const audit_ledger& ledger) {
  std::int64_t sum = 0;
  for (const auto& [why, tokens] : ledger.left_out) sum += tokens;
  return sum;
}

/// How often each stored token of a source is an input in a round.
using token_counts = std::vector<std::int64_t>;

/// Counts the inputs of one sample.
inline void count_inputs(const run& order, const source_sample& sample, token_counts& counts) {
  const indexed_dataset data(order.prefix(sample.source));
  counts.resize(static_cast<std::size_t>(data.token_count()));
  std::vector<piece> pieces;
  (void)order.pieces(sample, pieces);
  std::int64_t inputs = order.seq_len();
  for (const piece& p : pieces) {
    for (std::int64_t t = 0; t < p.tokens && inputs > 0; ++t, --inputs) {
      // In these datasets, token n has the value n.
      ++counts[static_cast<std::size_t>(data.sequence(p.sequence)[p.first + t])];
    }
  }
}

inline std::map<std::pair<std::int64_t, std::int64_t>, token_counts> enumerate(const run& order,
                                                                               const sampler& ranks,
                                                                               std::int64_t first,
                                                                               std::int64_t last) {
  std::map<std::pair<std::int64_t, std::int64_t>, token_counts> all;
  for (std::int64_t served = first; served < last; ++served) {
    const source_sample sample = order.at(ranks.position_of(served));
    std::int64_t before = 0;  // number of samples in the rounds of earlier passes
    if (ranks.pass_of(served) > 0) {
      const std::int64_t samples = order.taken(sample.source, order.end());
      before = ranks.pass_of(served) * order.round_of(sample.source, samples - 1).last;
    }
    count_inputs(order, sample,
                 all[{sample.source, before + order.round_of(sample.source, sample.k).first}]);
  }
  return all;
}

inline std::vector<audit_ledger> expect_counts(const run& order, const sampler& ranks,
                                               std::int64_t first, std::int64_t last,
                                               bool has_labels = true) {
  auto ledgers = audit_run(order, ranks, first, last);
  const auto counted =
      enumerate(order, ranks, ranks.first_sample_of(first), ranks.first_sample_of(last));
  EXPECT_EQ(std::ranges::count_if(ledgers, [](const auto& each) { return each.samples > 0; }),
            std::ssize(counted));
  for (const audit_ledger& each : ledgers) {
    const auto found = counted.find({each.source, each.round.first});
    if (found == counted.end()) {  // the ledger only lists tokens that were left out
      EXPECT_EQ(each.samples, 0);
      EXPECT_GT(each.left_out.back().second, 0);
      EXPECT_THAT(each.left_out.back().first, testing::HasSubstr("cyclic: "));
      continue;
    }
    std::int64_t served = 0;
    std::int64_t repeated = 0;
    std::int64_t odd = 0;
    for (std::size_t t = 0; t < found->second.size(); ++t) {
      const std::int64_t n = found->second[t];
      served += std::min(n, each.round.times);
      repeated += std::max<std::int64_t>(0, n - each.round.times);
      if (t % 2 != 0) odd += std::min(n, each.round.times);
    }
    EXPECT_EQ(each.served, served);
    EXPECT_EQ(each.trained.value_or(odd), odd) << "a mask trains the odd tokens";
    EXPECT_EQ(each.repeated, repeated);
    EXPECT_EQ(each.tokens, static_cast<std::int64_t>(found->second.size()));
    EXPECT_EQ(each.served + each.not_in_steps + left_out_in(each) + each.holes,
              each.tokens * each.round.times);
    EXPECT_EQ(each.label_only + each.padding + each.served + each.repeated,
              each.samples * (order.seq_len() + (has_labels ? 1 : 0)));
  }
  // An audit that divides the streams into parts gives the same counts. Its faults may differ only
  // at the borders of parts.
  auto in_parts = audit_run(order, ranks, first, last, {.most_changes = 10});
  EXPECT_EQ(in_parts.size(), ledgers.size());
  for (std::size_t i = 0; i < std::min(in_parts.size(), ledgers.size()); ++i) {
    EXPECT_EQ(in_parts[i].served, ledgers[i].served);
    EXPECT_EQ(in_parts[i].trained, ledgers[i].trained);
    EXPECT_EQ(in_parts[i].not_in_steps, ledgers[i].not_in_steps);
    EXPECT_EQ(in_parts[i].left_out, ledgers[i].left_out);
    EXPECT_EQ(in_parts[i].holes, ledgers[i].holes);
    EXPECT_EQ(in_parts[i].repeated, ledgers[i].repeated);
    EXPECT_EQ(in_parts[i].samples, ledgers[i].samples);
    EXPECT_EQ(in_parts[i].label_only, ledgers[i].label_only);
  }
  return ledgers;
}
inline std::vector<audit_ledger> expect_counts(const run& order, std::int64_t first,
                                               std::int64_t last, bool has_labels = true) {
  return expect_counts(order, audited_ranks(order), first, last, has_labels);
}

inline void expect_sound(const std::vector<audit_ledger>& ledgers) {
  for (const audit_ledger& each : ledgers) {
    EXPECT_TRUE(each.sound()) << each.holes << " missing, " << each.repeated << " repeated";
    EXPECT_THAT(each.faults, testing::IsEmpty());
  }
}

/// An order that serves wrong samples at some positions and drops the last input of one sample.
template <class Order>
class damaged : public Order {
 public:
  explicit damaged(Order good) : Order(std::move(good)) {}
  std::map<std::int64_t, std::int64_t> instead;  // key: position; value: position served instead
  std::optional<source_sample> cut;

  source_sample at(std::int64_t position) const override {
    const auto found = instead.find(position);
    return Order::at(found == instead.end() ? position : found->second);
  }
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const override {
    const std::int64_t padding = Order::pieces(sample, out);
    if (sample != cut) return padding;
    while (out.back().tokens == 0) out.pop_back();
    --out.back().tokens;  // drop the last label
    while (out.back().tokens == 0) out.pop_back();
    --out.back().tokens;
    return padding;
  }
};

class audit_fixture : public testing::Test {
 protected:
  std::filesystem::path stored(const std::string& name, int documents) {
    return test::store_documents(folder_ / name, random_, documents);
  }

  template <class Order>
  static void expect_found(const Order& good) {
    expect_found(good, audited_ranks(good));
  }
  template <class Order>
  static void expect_found(const Order& good, const sampler& ranks) {
    damaged<Order> bad(good);
    expect_sound(expect_counts(bad, ranks, 0, 3));
    bad.instead[ranks.position_of(5)] = ranks.position_of(4);
    const auto ledgers = expect_counts(bad, ranks, 0, 3);
    ASSERT_THAT(ledgers, testing::SizeIs(1));
    EXPECT_EQ(ledgers[0].repeated, good.seq_len());
    EXPECT_EQ(ledgers[0].holes, good.seq_len());
    // Faults are reported as ranges of tokens. Together, the ranges cover both samples.
    std::int64_t twice = 0;
    std::int64_t never = 0;
    for (const audit_fault& each : ledgers[0].faults) {
      (each.times > each.expected ? twice : never) += each.tokens;
    }
    EXPECT_EQ(twice, good.seq_len());
    EXPECT_EQ(never, good.seq_len());
    std::vector<piece> pieces;
    (void)good.pieces(good.at(ranks.position_of(4)), pieces);
    EXPECT_TRUE(std::ranges::any_of(ledgers[0].faults, [&](const audit_fault& each) {
      return each.times == 2 && std::ranges::any_of(pieces, [&](const piece& p) {
               return p.sequence == each.sequence && p.first <= each.first &&
                      each.first < p.first + p.tokens;
             });
    }));

    damaged<Order> short_one(good);
    short_one.cut = good.at(ranks.position_of(6));
    const auto of_short = audit_run(short_one, ranks, 0, 3);
    ASSERT_THAT(of_short, testing::SizeIs(1));
    EXPECT_EQ(of_short[0].holes, 1);
    EXPECT_EQ(of_short[0].repeated, 0);
    ASSERT_THAT(of_short[0].faults, testing::SizeIs(1));
    EXPECT_EQ(of_short[0].faults[0].tokens, 1);
    EXPECT_EQ(of_short[0].faults[0].times, 0);
  }

  test::temp_folder folder_;
  std::mt19937 random_{11};
};

}  // namespace millrace::dataset::audited
