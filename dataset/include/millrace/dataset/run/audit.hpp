// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/run/coverage.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/dataset/run/source_documents.hpp>
#include <millrace/dataset/run/topology.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// Tokens that are served more or less often than nothing explains.
struct audit_fault {
  std::int64_t sequence = 0;
  std::int64_t first = 0;   ///< token of the sequence
  std::int64_t tokens = 0;  ///< they may reach into the sequences behind it
  std::int64_t times = 0;   ///< how often they were an input
  std::int64_t expected = 0;

  friend bool operator==(const audit_fault&, const audit_fault&) = default;
};

/// What became of the tokens of a source in one round, an epoch or several. Tokens are counted as
/// inputs:
///
///   tokens * times = served + not_in_steps + all of left_out + holes
struct audit_ledger {
  std::int64_t source = 0;
  sample_round round;
  std::int64_t tokens = 0;  ///< of the whole dataset

  std::int64_t samples = 0;       ///< served
  std::int64_t served = 0;        ///< as often as they were to be
  std::int64_t not_in_steps = 0;  ///< of samples before the first step or behind the last
  std::vector<std::pair<std::string, std::int64_t>> left_out;  ///< why, and how many
  std::int64_t holes = 0;                                      ///< missing, and nothing says why
  std::int64_t repeated = 0;    ///< beside `served`: once more than they were to be
  std::int64_t label_only = 0;  ///< beside all: last labels, which the next window has as inputs
  std::int64_t padding = 0;     ///< beside all: tokens of no document
  std::vector<audit_fault> faults;  ///< the first of them

  bool sound() const noexcept { return holes == 0 && repeated == 0; }
};

struct audit_options {
  std::size_t most_changes = std::size_t{1} << 26;  ///< 16 bytes each, at once
  std::size_t most_faults = 16;                     ///< told of a ledger
};

/// Counts what a run serves in steps `first_step` up to but without `last_step`: every step, rank
/// and slot is walked and the tokens of its pieces are counted. What is missing is held against the
/// samples that other steps serve, walked as well, and against what the order says that it leaves
/// out; the rest is holes.
///
/// Where counts of all sources do not fit `most_changes`, the walk is repeated for each part of the
/// streams: bounded memory, more time.
///
/// @return one of each round of each source that the steps touch, by source and first sample
/// @throws config_error  there are no such steps, or they reach behind the run
/// @throws io_error, format_error  a dataset cannot be read
template <audited_order Order>
std::vector<audit_ledger> audit_run(const Order& order, const topology& ranks,
                                    std::int64_t first_step, std::int64_t last_step,
                                    const audit_options& options = {});

// ---------------------------------------------------------------------------------------------

namespace detail {

/// One audit: counts of the tokens `low` to `high` of all streams at a time.
template <audited_order Order>
class auditor {
 public:
  auditor(const Order& order, const topology& ranks, std::int64_t first_step,
          std::int64_t last_step, const audit_options& options)
      : order_(order),
        ranks_(ranks),
        first_step_(first_step),
        last_step_(last_step),
        options_(options) {
    for (std::int64_t s = 0; s < order.source_count(); ++s) {
      documents_.push_back(std::make_unique<const source_documents>(order.prefix(s)));
    }
  }

  std::vector<audit_ledger> run() {
    std::int64_t most = 1;
    for (const auto& each : documents_) most = std::max(most, each->data().token_count());
    for (std::int64_t span = most; low_ < most;) {
      high_ = low_ + std::min(span, most - low_);
      if (!count()) {
        span = std::max<std::int64_t>(1, span / 2);
        continue;
      }
      for (auto& [key, each] : counts_) settle(key.first, each);
      low_ = high_;
    }
    std::vector<audit_ledger> all;
    for (auto& [key, ledger] : ledgers_) all.push_back(std::move(ledger));
    return all;
  }

 private:
  using round_key = std::pair<std::int64_t, std::int64_t>;  // source, first sample
  struct counts {
    sample_round round;
    coverage served;
    coverage elsewhere;  // of samples that the steps do not serve
    std::int64_t samples = 0;
    std::int64_t label_only = 0;
    std::int64_t padding = 0;
  };

  bool full() const noexcept { return kept_ > options_.most_changes && high_ - low_ > 1; }

  bool count() {
    counts_.clear();
    kept_ = 0;
    for (std::int64_t step = first_step_; step < last_step_; ++step) {
      for (std::int64_t rank = 0; rank < ranks_.ranks(); ++rank) {
        for (std::int64_t slot = 0; slot < ranks_.slots(); ++slot) {
          const source_sample sample = order_.at(ranks_.position_of({step, rank, slot}));
          counts& here = counts_of(sample);
          ++here.samples;
          here.padding += add(sample, here.served, &here.label_only);
          if (full()) return false;
        }
      }
    }
    const std::int64_t begin = ranks_.first_position(first_step_);
    const std::int64_t end = ranks_.first_position(last_step_);
    for (auto& [key, here] : counts_) {
      const std::int64_t taken_before = order_.taken(key.first, begin);
      const std::int64_t taken = order_.taken(key.first, end);
      for (std::int64_t k = here.round.first; k < here.round.last; ++k) {
        if (taken_before <= k && k < taken) continue;
        add({key.first, k}, here.elsewhere, nullptr);
        if (full()) return false;
      }
    }
    return true;
  }

  counts& counts_of(const source_sample& sample) {
    const auto near = counts_.lower_bound({sample.source, sample.k + 1});
    if (near != counts_.begin()) {
      const auto found = std::prev(near);
      if (found->first.first == sample.source && sample.k < found->second.round.last) {
        return found->second;
      }
    }
    sample_round round = order_.round_of(sample.source, sample.k);
    counts& made = counts_[{sample.source, round.first}];
    made.round = std::move(round);
    return made;
  }

  /// @return tokens of padding
  std::int64_t add(const source_sample& sample, coverage& to, std::int64_t* label_only) {
    const std::int64_t padding = order_.pieces(sample, pieces_);
    const source_documents& documents = *documents_[static_cast<std::size_t>(sample.source)];
    kept_ -= to.size();
    std::int64_t inputs = order_.seq_len();
    for (const piece& p : pieces_) {
      const std::int64_t taken = std::min(p.tokens, inputs);
      inputs -= taken;
      if (label_only != nullptr) *label_only += p.tokens - taken;
      if (taken == 0) continue;
      const std::int64_t first = documents.first_token_of(p.sequence) + p.first;
      to.add(std::max(first, low_), std::min(first + taken, high_));
    }
    kept_ += to.size();
    return padding;
  }

  /// What is counted goes into the ledger.
  void settle(std::int64_t source, counts& counted) {
    const source_documents& documents = *documents_[static_cast<std::size_t>(source)];
    const std::int64_t tokens = documents.data().token_count();
    audit_ledger& ledger = ledgers_[{source, counted.round.first}];
    std::vector<coverage> left_out;
    std::vector<std::string> reasons;
    for (const dataset::left_out& each : order_.left_out_of(source, counted.round)) {
      const auto known = std::ranges::find(reasons, each.why);
      const auto i = static_cast<std::size_t>(known - reasons.begin());
      if (known == reasons.end()) {
        reasons.push_back(each.why);
        left_out.emplace_back();
      }
      left_out[i].add(std::max(each.first, low_), std::min(each.last, high_), each.times);
    }
    if (low_ == 0) {
      ledger.source = source;
      ledger.round = counted.round;
      ledger.tokens = tokens;
      ledger.samples = counted.samples;
      ledger.label_only = counted.label_only;
      ledger.padding = counted.padding;
      for (const std::string& why : reasons) ledger.left_out.emplace_back(why, 0);
    }

    // All changes of all counts, by place: 0 served, 1 elsewhere, then each reason.
    struct change {
      std::int64_t at;
      std::size_t of;
      std::int64_t by;
    };
    std::vector<change> changes;
    const auto take = [&](coverage& from, std::size_t of) {
      for (const count_change& each : from.changes()) changes.push_back({each.at, of, each.change});
    };
    take(counted.served, 0);
    take(counted.elsewhere, 1);
    for (std::size_t i = 0; i < left_out.size(); ++i) take(left_out[i], 2 + i);
    std::ranges::sort(changes, {}, &change::at);

    std::vector<std::int64_t> now(2 + left_out.size());
    const std::int64_t end = std::min(high_, tokens);
    std::int64_t at = low_;
    for (std::size_t i = 0; at < end;) {
      for (; i < changes.size() && changes[i].at <= at; ++i) now[changes[i].of] += changes[i].by;
      const std::int64_t next = i < changes.size() ? std::min(changes[i].at, end) : end;
      settle_run(documents, ledger, now, at, next);
      at = next;
    }
  }

  /// Tokens `first` up to but without `last`, all of which are counted alike.
  void settle_run(const source_documents& documents, audit_ledger& ledger,
                  const std::vector<std::int64_t>& now, std::int64_t first, std::int64_t last) {
    const std::int64_t tokens = last - first;
    const std::int64_t times = ledger.round.times;
    ledger.served += tokens * std::min(now[0], times);
    const std::int64_t repeated = std::max<std::int64_t>(0, now[0] - times);
    ledger.repeated += tokens * repeated;
    std::int64_t missing = std::max<std::int64_t>(0, times - now[0]);
    const auto explain = [&](std::int64_t by) {
      const std::int64_t explained = std::min(missing, by);
      missing -= explained;
      return tokens * explained;
    };
    ledger.not_in_steps += explain(now[1]);
    for (std::size_t i = 2; i < now.size(); ++i) ledger.left_out[i - 2].second += explain(now[i]);
    ledger.holes += tokens * missing;
    if ((missing == 0 && repeated == 0) || ledger.faults.size() >= options_.most_faults) return;
    const std::int64_t sequence = documents.sequence_of(first);
    ledger.faults.push_back(
        {sequence, first - documents.first_token_of(sequence), tokens, now[0], times});
  }

  const Order& order_;
  topology ranks_;
  std::int64_t first_step_;
  std::int64_t last_step_;
  audit_options options_;
  std::vector<std::unique_ptr<const source_documents>> documents_;
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::size_t kept_ = 0;
  std::map<round_key, counts> counts_;
  std::map<round_key, audit_ledger> ledgers_;
  std::vector<piece> pieces_;
};

}  // namespace detail

template <audited_order Order>
std::vector<audit_ledger> audit_run(const Order& order, const topology& ranks,
                                    std::int64_t first_step, std::int64_t last_step,
                                    const audit_options& options) {
  const std::int64_t steps =
      std::min(order.end() / ranks.global_batch_size(), ranks.last_step() + 1);
  if (first_step < 0 || first_step >= last_step || last_step > steps) {
    throw config_error("steps " + std::to_string(first_step) + " to " + std::to_string(last_step) +
                       ", expected two that ascend in 0 to " + std::to_string(steps) +
                       ", the whole steps of the run");
  }
  return detail::auditor<Order>(order, ranks, first_step, last_step, options).run();
}

}  // namespace millrace::dataset
