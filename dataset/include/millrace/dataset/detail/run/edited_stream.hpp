// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run_limits.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// What a run serves once it is edited: sample n of it is which position of the run without edits.
///
///   skip [3, 5), replay [1, 3) at 6      served     0 1 2 3 4 5 6 7 8 ...
///                                        position   0 1 2 5 1 2 6 7 8 ...
///
/// Positions keep their numbers; what is served moves up where something is skipped, and back where
/// something is replayed. An edit acts on what is served from `since` on, so that edits that are
/// added to a run leave what it has served where it was. A skipped position is not replayed either.
///
/// Immutable once made: any thread. Memory is O(ranges), look-ups O(log ranges).
class MILLRACE_EXPORT edited_stream {
 public:
  /// Samples that are served one behind another, and whose positions are.
  struct stretch {
    std::int64_t served = 0;    ///< the first served sample
    std::int64_t position = 0;  ///< its position
    std::int64_t count = 0;
    std::optional<std::size_t> replayed_by = {};  ///< number of the edit; nothing: their own turn
  };
  /// Positions that are never served.
  struct dropped_range {
    position_range positions;
    std::size_t by = 0;  ///< number of the edit, the first to act of those that skip or block them
  };

  /// No edits.
  edited_stream() : edited_stream(std::vector<resolved>{}) {}

  /// @param edits           in any order; of those with equal `since` and `at`, replays come in
  ///                        theirs
  /// @param first_position  first_position(step): of the run without edits; is asked for steps up
  ///                        to `most_steps`, and ascends up to `most_positions`
  /// @param positions_of    positions_of(edit): all positions of the run that have part of the
  ///                        blocked documents, as ranges in any order
  /// @throws config_error   an edit contradicts itself, comes when its replay is over, or names a
  ///                        step that begins behind `most_positions`.
  template <class FirstPosition, class PositionsOf>
  requires std::invocable<const FirstPosition&, std::int64_t> &&
      std::invocable<const PositionsOf&, const edit&>
      edited_stream(std::span<const edit> edits, const FirstPosition& first_position,
                    const PositionsOf& positions_of)
      : edited_stream(resolve(edits, first_position, positions_of)) {
    for (const edit& e : edits) why_.push_back(name_of(e) + ": " + e.why);
  }

  /// The position of the served sample n.
  ///
  /// @pre n >= 0
  std::int64_t operator[](std::int64_t n) const noexcept;

  /// Where a position is served first, or nothing if it never is.
  std::optional<std::int64_t> served(std::int64_t position) const;

  /// Everywhere a position is served, in order.
  std::vector<std::int64_t> all_served(std::int64_t position) const;

  /// How many samples are served before the first whose position is `end` or beyond: those of a run
  /// that ends there.
  ///
  /// @pre end >= 0
  std::int64_t served_before(std::int64_t end) const noexcept;

  /// The position of the served sample n of a run that ends.
  ///
  /// @param end  positions from here on are not served: `end()` of the order
  /// @pre n >= 0, end >= 0
  /// @throws config_error  the run ends before it: what was skipped moved it there, or too much was
  ///                       asked for.
  std::int64_t at(std::int64_t n, std::int64_t end) const;

  /// How far the first n served samples reach: no position from here on is one of them, and the one
  /// before it is. 0 for none.
  ///
  /// @pre n >= 0
  std::int64_t reached(std::int64_t n) const noexcept;

  /// Whether the first n served samples are the same as those of another stream: what edits that
  /// are added to a run must not change.
  bool same_until(const edited_stream& other, std::int64_t n) const noexcept;

  /// All that is served, in order; the last has no end.
  std::span<const stretch> stretches() const noexcept { return runs_; }

  /// An edit by its number, and its reason: "edit 0, skip_samples: loss spike".
  std::string why(std::size_t number) const {
    return "edit " + std::to_string(number) + ", " + why_[number];
  }

  /// All positions that are kept out, ascending.
  std::span<const dropped_range> dropped() const noexcept { return dropped_; }

 private:
  static constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

  struct resolved {
    std::int64_t since = 0;
    std::vector<position_range> skips;
    position_range replay;
    std::int64_t at = 0;  // of the replay
    bool is_replay = false;
    std::size_t number = 0;
  };
  class builder;

  template <class FirstPosition, class PositionsOf>
  static std::vector<resolved> resolve(std::span<const edit> edits,
                                       const FirstPosition& first_position,
                                       const PositionsOf& positions_of);
  explicit edited_stream(std::vector<resolved> edits);

  std::vector<std::string> why_;  // of each edit
  std::vector<stretch> runs_;     // by served; the last has no end
  std::vector<dropped_range> dropped_;
  std::vector<std::size_t> by_position_;    // into runs_
  std::vector<std::int64_t> furthest_end_;  // of by_position_ up to and with each
  std::vector<std::int64_t> reached_;       // of runs_ up to and with each
};

// ---------------------------------------------------------------------------------------------

/// Serves sample by sample, but a range at a time.
class MILLRACE_EXPORT edited_stream::builder {
 public:
  std::vector<stretch> runs;
  std::vector<dropped_range> dropped;

  void add(const resolved& e) {
    if (!e.is_replay) return add_skips(e.skips, e.number);
    if (e.at < position_) {
      throw config_error("edit " + std::to_string(e.number) + " replays samples at sample " +
                         std::to_string(e.at) + ", expected " + std::to_string(position_) +
                         " or later, the position of the run after " + std::to_string(e.since) +
                         " samples were served");
    }
    const auto behind = std::ranges::upper_bound(replays_, e.at, {}, &replay::at);
    replays_.insert(behind, {e.at, {e.replay, e.number}});
  }

  /// Serves until `end` samples are served.
  void advance(std::int64_t end) {
    while (served_ < end && position_ < forever) {
      if (!again_.empty()) {
        position_range& range = again_.front().range;
        const position_range free = next_free(range.first);
        range.first = std::min(free.first, range.last);
        range.first += put(range.first, std::min(free.last, range.last), end, again_.front().edit);
        if (range.first == range.last) again_.pop_front();
      } else if (!replays_.empty() && replays_.front().at == position_) {
        again_.push_back(replays_.front().what);
        replays_.erase(replays_.begin());
      } else {
        const std::int64_t stop = replays_.empty() ? forever : replays_.front().at;
        const position_range free = next_free(position_);
        drop_until(std::min(free.first, stop));
        position_ += put(position_, std::min(free.last, stop), end, std::nullopt);
      }
    }
  }

 private:
  struct repeated {
    position_range range;
    std::size_t edit;
  };
  struct replay {
    std::int64_t at;
    repeated what;
  };

  /// Serves positions `first` to `last - 1`, up to `end` in all. Returns how many.
  std::int64_t put(std::int64_t first, std::int64_t last, std::int64_t end,
                   std::optional<std::size_t> replayed_by) {
    const std::int64_t count = std::min(last - first, end - served_);
    if (count <= 0) return 0;
    if (!runs.empty() && runs.back().position + runs.back().count == first &&
        runs.back().replayed_by == replayed_by) {
      runs.back().count += count;
    } else {
      runs.push_back({served_, first, count, replayed_by});
    }
    served_ += count;
    return count;
  }

  /// The first run of positions from `position` on that is not skipped.
  position_range next_free(std::int64_t position) const {
    auto skip = first_skip_behind(position);
    for (; skip != skips_.end() && skip->positions.first <= position; ++skip) {
      position = skip->positions.last;
    }
    return {position, skip == skips_.end() ? forever : skip->positions.first};
  }

  /// Passes over positions that are all skipped.
  void drop_until(std::int64_t stop) {
    for (auto skip = first_skip_behind(position_); position_ < stop; ++skip) {
      const std::int64_t last = std::min(skip->positions.last, stop);
      append({{position_, last}, skip->by}, dropped);
      position_ = last;
    }
  }

  std::vector<dropped_range>::const_iterator first_skip_behind(std::int64_t position) const {
    return std::ranges::upper_bound(skips_, position, {},
                                    [](const dropped_range& s) { return s.positions.last; });
  }

  static void append(const dropped_range& next, std::vector<dropped_range>& to) {
    if (!to.empty() && to.back().by == next.by &&
        to.back().positions.last == next.positions.first) {
      to.back().positions.last = next.positions.last;
    } else {
      to.push_back(next);
    }
  }

  /// What another edit skips already stays its own.
  void add_skips(std::vector<position_range> ranges, std::size_t by) {
    std::ranges::sort(ranges, {}, &position_range::first);
    std::vector<dropped_range> all = skips_;
    std::int64_t done = 0;  // the ranges may overlap, too
    auto known = skips_.begin();
    for (const position_range& range : ranges) {
      std::int64_t at = std::max(range.first, done);
      while (at < range.last) {
        while (known != skips_.end() && known->positions.last <= at) ++known;
        const bool is_near = known != skips_.end() && known->positions.first < range.last;
        const std::int64_t last = is_near ? known->positions.first : range.last;
        if (at < last) all.push_back({{at, last}, by});
        at = is_near ? known->positions.last : range.last;
      }
      done = std::max(done, at);
    }
    std::ranges::sort(all, {}, [](const dropped_range& s) { return s.positions.first; });
    skips_.clear();
    for (const dropped_range& each : all) append(each, skips_);
  }

  std::int64_t served_ = 0;
  std::int64_t position_ = 0;         // the next that is served for the first time, or skipped
  std::vector<dropped_range> skips_;  // ascending, apart
  std::vector<replay> replays_;       // to come, ascending
  std::deque<repeated> again_;        // what is being replayed
};

template <class FirstPosition, class PositionsOf>
std::vector<edited_stream::resolved> edited_stream::resolve(std::span<const edit> edits,
                                                            const FirstPosition& first_position,
                                                            const PositionsOf& positions_of) {
  std::vector<resolved> all;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const edit& e = edits[i];
    check(e, i);
    const auto position = [&](std::int64_t n) {
      if (e.unit != edit_unit::steps) return n;
      const auto first = static_cast<std::int64_t>(first_position(n));
      if (0 <= first && first <= most_positions) return first;
      throw config_error("edit " + std::to_string(i) + ", " + name_of(e) + ": step " +
                         std::to_string(n) + " begins at sample " + std::to_string(first) +
                         ", expected 0 to 2^62");
    };
    resolved r;
    r.since = e.since;
    r.number = i;
    r.is_replay = e.kind == edit_kind::replay;
    if (r.is_replay) {
      r.replay = {position(e.first), position(e.last)};
      r.at = position(e.at);
    } else if (e.kind == edit_kind::block) {
      for (const position_range range : positions_of(e)) r.skips.push_back(range);
    } else {
      r.skips.push_back({position(e.first), position(e.last)});
    }
    all.push_back(std::move(r));
  }
  return all;
}

}  // namespace millrace::dataset
