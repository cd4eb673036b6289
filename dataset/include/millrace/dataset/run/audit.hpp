// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/instant/source_pool.hpp>
#include <millrace/dataset/run/coverage.hpp>
#include <millrace/dataset/run/run_order.hpp>
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

/// Tokens, and why they are not served once each.
using explained_tokens = std::pair<std::string, std::int64_t>;

/// What became of the tokens of a source in one round, an epoch or several. Tokens are counted as
/// inputs; where all that is to be replayed is:
///
///   tokens * times = served + not_in_steps + all of left_out + holes
struct audit_ledger {
  std::int64_t source = 0;
  sample_round round;
  std::int64_t tokens = 0;  ///< of the whole dataset

  std::int64_t samples = 0;                ///< served
  std::int64_t served = 0;                 ///< as often as they were to be
  std::int64_t not_in_steps = 0;           ///< of samples before the first step or behind the last
  std::vector<explained_tokens> left_out;  ///< by the order, then by edits or the sampler
  std::int64_t holes = 0;                  ///< missing, and nothing says why
  std::vector<explained_tokens> replayed;  ///< beside `served`: by edits
  std::int64_t repeated = 0;               ///< beside both: more often than they were to be
  std::int64_t label_only = 0;  ///< beside all: last labels, which the next window has as inputs
  std::int64_t padding = 0;     ///< beside all: tokens of no document
  std::vector<audit_fault> faults;  ///< the first of them

  bool sound() const noexcept { return holes == 0 && repeated == 0; }
};

struct audit_options {
  std::size_t most_changes = std::size_t{1} << 26;  ///< 16 bytes each, at once
  std::size_t most_faults = 16;                     ///< told of a ledger
  std::size_t most_open = 512;                      ///< indices kept open
};

/// Counts what a run serves in steps `first_step` up to but without `last_step`: every step, rank
/// and slot is walked and the tokens of its pieces are counted. What is missing is held against the
/// samples that other steps serve and those that edits or the sampler drop, walked as well, and
/// against what the order says that it leaves out; the rest is holes. What is served more often is
/// held against the samples that edits replay; the rest is repeated.
///
/// Where counts of all sources do not fit `most_changes`, the walk is repeated for each part of the
/// streams: bounded memory, more time.
///
/// An edited run is audited as `edited_run`: its steps are those that are served.
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
        options_(options),
        sources_(prefixes_of(order), options.most_open) {}

  std::vector<audit_ledger> run() {
    std::int64_t most = 1;
    for (std::int64_t s = 0; s < sources_.size(); ++s) {
      most = std::max(most, index_columns(sources_.prefix(s), index_access::pread).token_count());
    }
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
  struct explained {
    std::string why;
    coverage tokens;
  };
  struct counts {
    sample_round round;
    coverage served;
    coverage elsewhere;              // of samples that other steps serve
    std::vector<explained> dropped;  // of samples that no step serves
    std::vector<explained> again;    // of samples that the steps serve beside their turn
    std::int64_t samples = 0;
    std::int64_t label_only = 0;
    std::int64_t padding = 0;
  };

  static std::vector<std::filesystem::path> prefixes_of(const Order& order) {
    std::vector<std::filesystem::path> prefixes;
    for (std::int64_t s = 0; s < order.source_count(); ++s) prefixes.push_back(order.prefix(s));
    return prefixes;
  }

  bool full() const noexcept { return kept_ > options_.most_changes && high_ - low_ > 1; }

  static coverage& of(std::vector<explained>& all, const std::string& why) {
    const auto known = std::ranges::find(all, why, &explained::why);
    return known == all.end() ? all.emplace_back(explained{why, {}}).tokens : known->tokens;
  }

  bool count() {
    counts_.clear();
    kept_ = 0;
    for (std::int64_t step = first_step_; step < last_step_; ++step) {
      for (std::int64_t rank = 0; rank < ranks_.ranks(); ++rank) {
        for (std::int64_t slot = 0; slot < ranks_.slots(step); ++slot) {
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
    if constexpr (rearranged_order<Order>) {
      for (const source_sample& each : order_.also_touched(begin, end)) (void)counts_of(each);
    }
    return std::ranges::all_of(counts_, [&](auto& each) {
      return count_others(each.first.first, each.second, begin, end);
    });
  }

  /// All samples of the round that positions `begin` up to `end` are not to serve in their turn.
  bool count_others(std::int64_t source, counts& here, std::int64_t begin, std::int64_t end) {
    sample_turns turns;
    if constexpr (rearranged_order<Order>) {
      turns = order_.turns_of(source, here.round, begin, end);
    } else {
      turns.here = {samples_at(order_, source, here.round, begin, end)};
    }
    struct known {
      sample_range samples;
      coverage* to;
    };
    std::vector<known> all;
    for (const explained_samples& each : turns.dropped) (void)of(here.dropped, each.why);
    for (const explained_samples& each : turns.again) (void)of(here.again, each.why);
    for (const sample_range& each : turns.here) all.push_back({each, nullptr});
    for (const explained_samples& each : turns.dropped) {
      all.push_back({each.samples, &of(here.dropped, each.why)});
    }
    std::ranges::sort(all, {}, [](const known& each) { return each.samples.first; });
    const auto add_all = [&](const sample_range& samples, coverage& to) {
      for (std::int64_t k = samples.first; k < samples.last; ++k) {
        add({source, k}, to, nullptr);
        if (full()) return false;
      }
      return true;
    };
    std::int64_t k = here.round.first;
    for (const known& each : all) {
      if (!add_all({k, each.samples.first}, here.elsewhere)) return false;
      if (each.to != nullptr && !add_all(each.samples, *each.to)) return false;
      k = std::max(k, each.samples.last);
    }
    if (!add_all({k, here.round.last}, here.elsewhere)) return false;
    return std::ranges::all_of(turns.again, [&](const explained_samples& each) {
      return add_all(each.samples, of(here.again, each.why));
    });
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
    const auto documents = sources_.get(sample.source);
    kept_ -= to.size();
    std::int64_t inputs = order_.seq_len();
    for (const piece& p : pieces_) {
      const std::int64_t taken = std::min(p.tokens, inputs);
      inputs -= taken;
      if (label_only != nullptr) *label_only += p.tokens - taken;
      if (taken == 0) continue;
      const std::int64_t first = documents->first_token_of(p.sequence) + p.first;
      to.add(std::max(first, low_), std::min(first + taken, high_));
    }
    kept_ += to.size();
    return padding;
  }

  /// What is counted goes into the ledger.
  void settle(std::int64_t source, counts& counted) {
    const auto documents = sources_.get(source);
    const std::int64_t tokens = documents->columns().token_count();
    audit_ledger& ledger = ledgers_[{source, counted.round.first}];
    std::vector<explained> left_out;
    for (const dataset::left_out& each : order_.left_out_of(source, counted.round)) {
      of(left_out, each.why)
          .add(std::max(each.first, low_), std::min(each.last, high_), each.times);
    }
    std::ranges::move(counted.dropped, std::back_inserter(left_out));
    if (low_ == 0) {
      ledger.source = source;
      ledger.round = counted.round;
      ledger.tokens = tokens;
      ledger.samples = counted.samples;
      ledger.label_only = counted.label_only;
      ledger.padding = counted.padding;
      for (const explained& each : left_out) ledger.left_out.emplace_back(each.why, 0);
      for (const explained& each : counted.again) ledger.replayed.emplace_back(each.why, 0);
    }

    // All changes of all counts, by place, numbered as settle_run takes them.
    struct change {
      std::int64_t at;
      std::size_t of;
      std::int64_t by;
    };
    std::vector<change> changes;
    std::size_t taken = 0;
    const auto take = [&](coverage& from) {
      for (const count_change& each : from.changes()) {
        changes.push_back({each.at, taken, each.change});
      }
      ++taken;
    };
    take(counted.served);
    take(counted.elsewhere);
    for (explained& each : left_out) take(each.tokens);
    for (explained& each : counted.again) take(each.tokens);
    std::ranges::sort(changes, {}, &change::at);

    std::vector<std::int64_t> now(taken);
    const std::int64_t end = std::min(high_, tokens);
    std::int64_t at = low_;
    for (std::size_t i = 0; at < end;) {
      for (; i < changes.size() && changes[i].at <= at; ++i) now[changes[i].of] += changes[i].by;
      const std::int64_t next = i < changes.size() ? std::min(changes[i].at, end) : end;
      settle_run(*documents, ledger, now, at, next);
      at = next;
    }
  }

  /// Tokens `first` up to but without `last`, all of which are counted alike: served, elsewhere,
  /// left out for each reason, replayed for each.
  void settle_run(const document_search& documents, audit_ledger& ledger,
                  const std::vector<std::int64_t>& now, std::int64_t first, std::int64_t last) {
    const std::int64_t tokens = last - first;
    const auto take = [&](std::int64_t& from, std::int64_t at_most) {
      const std::int64_t taken = std::min(from, at_most);
      from -= taken;
      return taken;
    };
    std::size_t i = 1;
    std::int64_t due = ledger.round.times;  // here, after what is accounted for otherwise
    ledger.not_in_steps += tokens * take(due, now[i++]);
    for (auto& [why, left] : ledger.left_out) left += tokens * take(due, now[i++]);
    std::int64_t unexplained = now[0];
    std::int64_t expected = due;
    const std::int64_t served = take(unexplained, due);
    std::int64_t missing = due - served;
    ledger.served += tokens * served;
    for (auto& [why, replayed] : ledger.replayed) {
      const std::int64_t again = take(unexplained, now[i]);
      replayed += tokens * again;
      missing += now[i] - again;
      expected += now[i++];
    }
    ledger.holes += tokens * missing;
    ledger.repeated += tokens * unexplained;
    if ((missing == 0 && unexplained == 0) || ledger.faults.size() >= options_.most_faults) return;
    const std::int64_t sequence = documents.sequence_of(first);
    ledger.faults.push_back(
        {sequence, first - documents.first_token_of(sequence), tokens, now[0], expected});
  }

  const Order& order_;
  topology ranks_;
  std::int64_t first_step_;
  std::int64_t last_step_;
  audit_options options_;
  source_pool sources_;
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
  const std::int64_t steps = ranks.whole_steps(order.end());
  if (first_step < 0 || first_step >= last_step || last_step > steps) {
    throw config_error("steps " + std::to_string(first_step) + " to " + std::to_string(last_step) +
                       ", expected two that ascend in 0 to " + std::to_string(steps) +
                       ", the whole steps of the run");
  }
  return detail::auditor<Order>(order, ranks, first_step, last_step, options).run();
}

}  // namespace millrace::dataset
