// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/where.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/source_pool.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/detail/run/coverage.hpp>
#include <millrace/dataset/detail/token_mask.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/error.hpp>

#include "pass_lengths.hpp"

namespace millrace::dataset {

namespace detail {

/// An audit of some steps ("these steps" below). Divides each stream into parts. At any time,
/// counts only the tokens of one part, [low_, high_), of every stream.
class auditor {
 public:
  auditor(const run& order, const sampler& ranks, std::int64_t first_step, std::int64_t last_step,
          const audit_options& options)
      : order_(order),
        ranks_(ranks),
        first_step_(first_step),
        last_step_(last_step),
        options_(options),
        lengths_(order, ranks),
        sources_(prefixes_of(order), options.most_open) {}

  std::vector<audit_ledger> all_ledgers() {
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
    std::int64_t pass = 0;  // cyclic only
    sample_round round;     // its sample indices count within one pass
    coverage served;
    coverage elsewhere;              // tokens of samples that other steps serve
    std::vector<explained> dropped;  // tokens of samples that no step serves
    std::vector<explained> again;    // tokens of samples that these steps should serve again
    std::int64_t samples = 0;
    std::int64_t label_only = 0;
    std::int64_t padding = 0;
  };

  static std::vector<std::filesystem::path> prefixes_of(const run& order) {
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
    const std::int64_t begin = ranks_.first_sample_of(first_step_);
    const std::int64_t end = ranks_.first_sample_of(last_step_);
    for (std::int64_t step = first_step_; step < last_step_; ++step) {
      for (std::int64_t rank = 0; rank < ranks_.options().world_size; ++rank) {
        for (std::int64_t slot = 0; slot < ranks_.slots(step); ++slot) {
          const std::int64_t served = ranks_.sample_of({step, rank, slot});
          const source_sample sample = order_.at(ranks_.position_of(served));
          counts& here = counts_of(sample, ranks_.pass_of(served));
          ++here.samples;
          here.padding += add(sample, here.served, &here.label_only);
          if (full()) return false;
        }
      }
    }
    turns_.clear();
    for (const auto& [pass, turns] : ranks_.turns(begin, end)) {
      sample_turns& to = turns_[pass];
      to.resize(static_cast<std::size_t>(order_.source_count()));
      put(turns.here, &turned::here, to);
      put(turns.dropped, &turned::dropped, to);
      put(turns.again, &turned::again, to);
      // A round may lose samples even if these steps serve none of its samples. With the `cyclic`
      // sampler, it loses the samples that the pass drops. With edits, it loses the samples dropped
      // between the last sample before these steps and the first sample after these steps.
      if (!lengths_.has_passes()) continue;
      for (std::size_t s = 0; s < to.size(); ++s) {
        for (const sample_span& each : to[s].dropped) {
          touch(static_cast<std::int64_t>(s), each.first, each.last, pass);
        }
      }
    }
    for (const position_range& each : ranks_.dropped_between(begin, end)) {
      for_samples(each, [&](std::int64_t source, std::int64_t first, std::int64_t last) {
        touch(source, first, last, 0);
      });
    }
    return std::ranges::all_of(
        counts_, [&](auto& each) { return count_others(each.first.first, each.second); });
  }

  /// Samples of one source in a range of positions.
  struct sample_span {
    std::int64_t first;
    std::int64_t last;
    const std::string* why = nullptr;
  };
  struct turned {
    std::vector<sample_span> here;
    std::vector<sample_span> dropped;
    std::vector<sample_span> again;
  };
  using sample_turns = std::vector<turned>;  // [source]

  /// Calls `each(source, first, last)` for the samples of each source in a range of positions. Does
  /// not call `run::at`, because `run::at` is what this class audits.
  template <class Each>
  void for_samples(const position_range& positions, const Each& each) const {
    for (std::int64_t s = 0; s < order_.source_count(); ++s) {
      const std::int64_t begin = order_.taken(s, std::min(positions.first, order_.end()));
      const std::int64_t end = order_.taken(s, std::min(positions.last, order_.end()));
      if (begin < end) each(s, begin, end);
    }
  }

  static const position_range& range_of(const position_range& each) noexcept { return each; }
  static const position_range& range_of(const explained_positions& each) noexcept {
    return each.positions;
  }
  static std::string why_of(const position_range&) { return {}; }
  static const std::string& why_of(const explained_positions& each) noexcept { return each.why; }

  template <class Range>
  void put(const std::vector<Range>& ranges, std::vector<sample_span> turned::*list,
           sample_turns& to) {
    const auto add = [&](const Range& from, std::int64_t source, std::int64_t first,
                         std::int64_t last) {
      // The reasons must outlive `ranges`.
      const std::string* why = &*whys_.insert(why_of(from)).first;
      (to[static_cast<std::size_t>(source)].*list).push_back({first, last, why});
    };
    if (!lengths_.has_passes()) {
      for (const Range& range : ranges) {
        for_samples(range_of(range), [&](std::int64_t source, std::int64_t first,
                                         std::int64_t last) { add(range, source, first, last); });
      }
      return;
    }
    // The passes of the `cyclic` sampler have many short ranges, in ascending order. So count
    // samples in a single scan.
    std::vector<std::int64_t> taken(to.size());
    std::int64_t position = 0;
    for (const Range& range : ranges) {
      for (; position < range_of(range).last; ++position) {
        const std::int64_t source = order_.at(position).source;
        const std::int64_t k = taken[static_cast<std::size_t>(source)]++;
        if (position >= range_of(range).first) add(range, source, k, k + 1);
      }
    }
  }

  /// Adds the rounds of samples [first, last) to `counts_`.
  void touch(std::int64_t source, std::int64_t first, std::int64_t last, std::int64_t pass) {
    for (std::int64_t k = first; k < last; k = order_.round_of(source, k).last) {
      (void)counts_of({source, k}, pass);
    }
  }

  /// Counts all samples of the round except those that these steps should serve for the first time.
  /// Returns false if `full()`.
  bool count_others(std::int64_t source, counts& here) {
    struct known {
      sample_span samples;
      coverage* to;
    };
    // `at` never throws, because `turns_` has an entry for the pass of every round in `counts_`.
    const turned& turns = turns_.at(here.pass)[static_cast<std::size_t>(source)];
    const auto in_round = [&](sample_span range) {
      range.first = std::max(range.first, here.round.first);
      range.last = std::max(range.first, std::min(range.last, here.round.last));
      return range;
    };
    std::vector<known> all;
    for (const sample_span& each : turns.here) {
      const sample_span range = in_round(each);
      if (range.first < range.last) all.push_back({range, nullptr});
    }
    const auto each_of = [&](const std::vector<sample_span>& ranges, const auto& add) {
      for (const sample_span& each : ranges) {
        const sample_span range = in_round(each);
        if (range.first < range.last) add(range);
      }
    };
    // Add all reasons first, because adding a reason may move the coverages in memory.
    each_of(turns.dropped, [&](const sample_span& each) { (void)of(here.dropped, *each.why); });
    each_of(turns.again, [&](const sample_span& each) { (void)of(here.again, *each.why); });
    each_of(turns.dropped, [&](const sample_span& each) {
      all.push_back({each, &of(here.dropped, *each.why)});
    });
    std::ranges::sort(all, {}, [](const known& each) { return each.samples.first; });
    const auto add_all = [&](std::int64_t first, std::int64_t last, coverage& to) {
      for (std::int64_t k = first; k < last; ++k) {
        add({source, k}, to, nullptr);
        if (full()) return false;
      }
      return true;
    };
    std::int64_t k = here.round.first;
    for (const known& each : all) {
      if (!add_all(k, each.samples.first, here.elsewhere)) return false;
      if (each.to != nullptr && !add_all(each.samples.first, each.samples.last, *each.to)) {
        return false;
      }
      k = std::max(k, each.samples.last);
    }
    if (!add_all(k, here.round.last, here.elsewhere)) return false;
    bool fits = true;
    each_of(turns.again, [&](const sample_span& each) {
      fits = fits && add_all(each.first, each.last, of(here.again, *each.why));
    });
    return fits;
  }

  /// Returns the counts of the round of a sample. Their key in `counts_` has the index of the
  /// round's first sample over all passes.
  counts& counts_of(const source_sample& sample, std::int64_t pass) {
    const std::int64_t before = lengths_.first(pass, sample.source);
    const auto near = counts_.lower_bound({sample.source, before + sample.k + 1});
    if (near != counts_.begin()) {
      const auto found = std::prev(near);
      if (found->first.first == sample.source &&
          before + sample.k < before_of(found->second, sample.source) + found->second.round.last) {
        return found->second;
      }
    }
    sample_round round = order_.round_of(sample.source, sample.k);
    counts& made = counts_[{sample.source, before + round.first}];
    made.pass = pass;
    made.round = std::move(round);
    return made;
  }
  std::int64_t before_of(const counts& of, std::int64_t source) const noexcept {
    return lengths_.first(of.pass, source);
  }

  /// Adds the inputs of a sample to `to` and, if `label_only` is not null, the number of its last
  /// labels to `*label_only`.
  /// @return number of padding tokens
  std::int64_t add(const source_sample& sample, coverage& to, std::int64_t* label_only) {
    const std::int64_t padding = order_.pieces(sample, pieces_);
    const auto documents = sources_.get(sample.source);
    kept_ -= to.size();
    // A row has as many inputs, unless each document also has a label that is no input.
    std::int64_t inputs =
        order_.last_token_as_label() ? std::numeric_limits<std::int64_t>::max() : order_.seq_len();
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

  /// Adds the counts of a round to its ledger.
  void settle(std::int64_t source, counts& counted) {
    const auto documents = sources_.get(source);
    const std::int64_t tokens = documents->columns().token_count();
    const std::int64_t before = before_of(counted, source);
    audit_ledger& ledger = ledgers_[{source, before + counted.round.first}];
    std::vector<explained> left_out;
    for (const dataset::left_out& each : order_.left_out_of(source, counted.round)) {
      of(left_out, each.why)
          .add(std::max(each.first, low_), std::min(each.last, high_), each.times);
    }
    std::ranges::move(counted.dropped, std::back_inserter(left_out));
    if (low_ == 0) {
      ledger.source = source;
      ledger.round = counted.round;
      ledger.round.first += before;
      ledger.round.last += before;
      if (lengths_.has_passes()) {
        ledger.round.name = "pass " + std::to_string(counted.pass) + ", " + ledger.round.name;
      }
      ledger.tokens = tokens;
      ledger.samples = counted.samples;
      if (find_mask(source)) ledger.trained = 0;
      ledger.label_only = counted.label_only;
      ledger.padding = counted.padding;
      for (const explained& each : left_out) ledger.left_out.emplace_back(each.why, 0);
      for (const explained& each : counted.again) ledger.replayed.emplace_back(each.why, 0);
    }

    // All changes of all counts, sorted by offset. `of` is the index of the count in the argument
    // `now` of `settle_run`.
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

    const source_mask* const mask = find_mask(source);
    std::vector<std::int64_t> now(taken);
    const std::int64_t end = std::min(high_, tokens);
    std::int64_t at = low_;
    for (std::size_t i = 0; at < end;) {
      for (; i < changes.size() && changes[i].at <= at; ++i) now[changes[i].of] += changes[i].by;
      const std::int64_t next = i < changes.size() ? std::min(changes[i].at, end) : end;
      settle_run(*documents, mask, ledger, now, at, next);
      at = next;
    }
    if (mask != nullptr) mask->watch.check_there(mask->mask.path());
  }

  struct source_mask {
    token_mask mask;
    lost_page_watch watch;
  };

  /// The mask of a source, which is checked when it is opened. Null if it has none.
  const source_mask* find_mask(std::int64_t source) {
    const auto [found, is_new] = masks_.try_emplace(source);
    std::optional<source_mask>& mask = found->second;
    if (is_new) {
      const std::int64_t tokens = sources_.get(source)->columns().token_count();
      auto opened = token_mask::find(order_.prefix(source), static_cast<std::uint64_t>(tokens));
      if (opened) {
        lost_page_watch watch(opened->bytes());
        mask.emplace(source_mask{*std::move(opened), std::move(watch)});
        mask->mask.verify();
        mask->watch.check_there(mask->mask.path());
      }
    }
    return mask ? &*mask : nullptr;
  }

  /// Accounts for tokens [first, last), which all have the same counts. `now` has these counts in
  /// this order: served, elsewhere, one per reason in left_out, one per reason in replayed.
  void settle_run(const document_search& documents, const source_mask* mask, audit_ledger& ledger,
                  const std::vector<std::int64_t>& now, std::int64_t first, std::int64_t last) {
    const std::int64_t tokens = last - first;
    const auto take = [&](std::int64_t& from, std::int64_t at_most) {
      const std::int64_t taken = std::min(from, at_most);
      from -= taken;
      return taken;
    };
    std::size_t i = 1;
    std::int64_t due = ledger.round.times;  // how often these steps still have to serve the tokens
    ledger.not_in_steps += tokens * take(due, now[i++]);
    for (auto& [why, left] : ledger.left_out) left += tokens * take(due, now[i++]);
    std::int64_t unexplained = now[0];
    std::int64_t expected = due;
    const std::int64_t served = take(unexplained, due);
    std::int64_t missing = due - served;
    ledger.served += tokens * served;
    if (mask != nullptr && served != 0) {
      const std::uint64_t trained = mask->mask.bits().count(static_cast<std::uint64_t>(first),
                                                            static_cast<std::uint64_t>(last));
      *ledger.trained += static_cast<std::int64_t>(trained) * served;
    }
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

  const run& order_;
  const sampler& ranks_;
  std::int64_t first_step_;
  std::int64_t last_step_;
  audit_options options_;
  pass_lengths lengths_;
  source_pool sources_;
  std::int64_t low_ = 0;
  std::int64_t high_ = 0;
  std::size_t kept_ = 0;
  std::map<round_key, counts> counts_;
  std::map<std::int64_t, sample_turns> turns_;  // by pass
  std::set<std::string> whys_;
  std::map<round_key, audit_ledger> ledgers_;
  std::vector<piece> pieces_;
  std::map<std::int64_t, std::optional<source_mask>> masks_;  // by source
};

}  // namespace detail

MILLRACE_INLINE std::vector<audit_ledger> audit_run(const run& order, const sampler& ranks,
                                                    std::int64_t first_step, std::int64_t last_step,
                                                    const audit_options& options) {
  const std::int64_t begin = ranks.first_whole_step();
  const std::int64_t end = ranks.end_of_whole_steps();
  if (first_step < begin || first_step >= last_step || last_step > end) {
    throw config_error("steps " + std::to_string(first_step) + " to " + std::to_string(last_step) +
                       ", expected an ascending range within " + std::to_string(begin) + " to " +
                       std::to_string(end) + ", the complete steps of the run");
  }
  return detail::auditor(order, ranks, first_step, last_step, options).all_ledgers();
}

}  // namespace millrace::dataset
