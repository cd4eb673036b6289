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

#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// Maps each served sample of an edited run to its position in the run without edits.
///
///   skip [3, 5), replay [1, 3) at 6      served     0 1 2 3 4 5 6 7 8 ...
///                                        position   0 1 2 5 1 2 6 7 8 ...
///
/// Edits do not renumber positions. A skip moves all later positions to earlier samples, and a
/// replay moves them to later samples. An edit affects only samples from `since` on. So adding an
/// edit to a run does not change the samples that the run has served. Skipped positions are not
/// replayed.
///
/// Immutable, thread-safe. Memory is O(ranges), lookups are O(log ranges).
class MILLRACE_EXPORT edited_stream {
 public:
  /// Consecutive served samples that have consecutive positions.
  struct stretch {
    std::int64_t served = 0;    ///< the first served sample
    std::int64_t position = 0;  ///< its position
    std::int64_t count = 0;
    std::optional<std::size_t> replayed_by = {};  ///< index of the edit; nullopt: not a replay
  };
  /// Positions that are never served.
  struct dropped_range {
    position_range positions;
    /// Index of the edit that drops these positions. If several edits drop them, this is the edit
    /// that acts first.
    std::size_t by = 0;
  };

  /// Creates a stream without edits.
  edited_stream() : edited_stream(std::vector<resolved>{}) {}

  /// @param edits           in any order; replays with equal `since` and `at` are served in list
  ///                        order
  /// @param first_position  first_position(step) is the first position of the step in the run
  ///                        without edits. Called for steps up to `most_steps`. Its results must
  ///                        ascend until they reach `most_positions`
  /// @param positions_of    positions_of(edit) returns all positions of the run whose samples
  ///                        contain any part of the blocked documents, as ranges in any order
  /// @throws config_error   an edit is inconsistent, names a step that begins after
  ///                        `most_positions`, or has a replay that comes too late: after `since`
  ///                        samples, the run has already passed `at`.
  template <class FirstPosition, class PositionsOf>
  requires std::invocable<const FirstPosition&, std::int64_t> &&
      std::invocable<const PositionsOf&, const edit&>
      edited_stream(std::span<const edit> edits, const FirstPosition& first_position,
                    const PositionsOf& positions_of)
      : edited_stream(resolve(edits, first_position, positions_of)) {
    for (const edit& e : edits) why_.push_back(name_of(e) + ": " + e.why);
  }

  /// The position that sample n serves.
  ///
  /// @pre n >= 0
  std::int64_t operator[](std::int64_t n) const noexcept;

  /// The first sample that serves a position; nullopt if the position is never served.
  std::optional<std::int64_t> served(std::int64_t position) const;

  /// All samples that serve a position, in order.
  std::vector<std::int64_t> all_served(std::int64_t position) const;

  /// Number of samples before the first sample that serves position `end` or a later position. If
  /// the run without edits has `end` positions, this is the length of the edited run.
  ///
  /// @pre end >= 0
  std::int64_t served_before(std::int64_t end) const noexcept;

  /// The position that sample n serves in a finite run.
  ///
  /// @param end  number of positions: `end()` of the order
  /// @pre n >= 0, end >= 0
  /// @throws config_error  the edited run ends before sample n.
  std::int64_t at(std::int64_t n, std::int64_t end) const;

  /// Returns the largest position among the first n served samples, plus one; 0 if n is 0.
  ///
  /// @pre n >= 0
  std::int64_t reached(std::int64_t n) const noexcept;

  /// True if this stream and `other` serve the same first n samples. Edits that are added to a run
  /// must not change the samples that were already served.
  bool same_until(const edited_stream& other, std::int64_t n) const noexcept;

  /// All stretches, in the order in which they are served. The last stretch has no end.
  std::span<const stretch> stretches() const noexcept { return runs_; }

  /// The index, name and reason of an edit: "edit 0, skip_samples: loss spike".
  std::string why(std::size_t number) const {
    return "edit " + std::to_string(number) + ", " + why_[number];
  }

  /// All positions that are never served, ascending.
  std::span<const dropped_range> dropped() const noexcept { return dropped_; }

 private:
  static constexpr std::int64_t forever = std::numeric_limits<std::int64_t>::max();

  struct resolved {
    std::int64_t since = 0;
    std::vector<position_range> skips;
    position_range replay;
    std::int64_t at = 0;  // replay only
    bool is_replay = false;
    std::size_t number = 0;
  };
  class builder;

  template <class FirstPosition, class PositionsOf>
  static std::vector<resolved> resolve(std::span<const edit> edits,
                                       const FirstPosition& first_position,
                                       const PositionsOf& positions_of);
  explicit edited_stream(std::vector<resolved> edits);

  std::vector<std::string> why_;  // one per edit
  std::vector<stretch> runs_;     // sorted by `served`; the last has no end
  std::vector<dropped_range> dropped_;
  std::vector<std::size_t> by_position_;    // indices into runs_, sorted by position
  std::vector<std::int64_t> furthest_end_;  // [i]: largest end of stretches 0 to i of by_position_
  std::vector<std::int64_t> reached_;       // [i]: largest end of stretches 0 to i of runs_
};

// ---------------------------------------------------------------------------------------------

/// Builds the stretches of the stream. Goes through the samples in the order in which the edited
/// run serves them, one range of positions at a time.
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

  /// Serves positions until `end` samples have been served.
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

  /// Serves positions [first, last), but stops when `end` samples are served. Returns how many
  /// positions were served.
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

  /// Returns the first range of unskipped positions at or after `position`.
  position_range next_free(std::int64_t position) const {
    auto skip = first_skip_behind(position);
    for (; skip != skips_.end() && skip->positions.first <= position; ++skip) {
      position = skip->positions.last;
    }
    return {position, skip == skips_.end() ? forever : skip->positions.first};
  }

  /// Advances to position `stop`. All remaining positions before `stop` must be skipped positions.
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

  /// Adds ranges that the edit with index `by` skips. If an earlier edit already skips a position,
  /// the position remains attributed to that edit.
  void add_skips(std::vector<position_range> ranges, std::size_t by) {
    std::ranges::sort(ranges, {}, &position_range::first);
    std::vector<dropped_range> all = skips_;
    std::int64_t done = 0;  // the new ranges may overlap each other
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
  std::int64_t position_ = 0;         // next position to be served for the first time, or skipped
  std::vector<dropped_range> skips_;  // ascending, disjoint
  std::vector<replay> replays_;       // pending replays, ascending
  std::deque<repeated> again_;        // replays in progress
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
