// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/blend_slots.hpp>
#include <millrace/dataset/run_limits.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A source in a segment of a schedule.
struct weighted_source {
  std::int64_t source = 0;  ///< its place in the list of all sources of the run
  double weight = 0;        ///< above zero; only ratios count
};

/// From a step on, what is blended. It holds until the next segment begins.
struct schedule_segment {
  std::int64_t first_step = 0;  ///< 0 in the first segment; ascending
  std::vector<weighted_source> sources;
};

/// Where a segment of a schedule begins.
struct segment_begin {
  std::int64_t step = 0;
  std::int64_t position = 0;
};

/// What may be served of a source.
struct source_limit {
  std::string name;  ///< for messages
  /// Samples: the repetitions allowed times those of an epoch. Nothing: no limit; nor is one that
  /// no position below `most_positions` comes to.
  std::optional<std::int64_t> most_samples;
};

/// The first sample that a limit forbids.
struct exceeded_limit {
  std::int64_t source = 0;
  std::int64_t position = 0;
  std::int64_t step = 0;
};

/// Position of the run to (source, k) and back, where the blend changes at given steps.
///
/// A source's k goes on in each segment where the segments before have left it, so that a source
/// that comes or goes moves nothing of what was consumed. Definition:
/// formats/spec/instant_order.md, section 6. Any thread.
class schedule {
 public:
  /// The first position of a step: step times global batch where that is constant, a sum where it
  /// ramps up. It is 0 of step 0 and ascends with each step. It is asked for steps up to
  /// `most_steps`, and for later ones only where positions below `most_positions` are half as far.
  using first_position = std::function<std::int64_t(std::int64_t step)>;

  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param limits         one for each source of the run, in the order that segments count by
  /// @param train_samples  how many positions the run has, if it has an end
  /// @throws config_error  there is no segment; the first does not begin at step 0; they do not
  ///                       ascend; one begins when the run is over; one names a source that is not
  ///                       there, or one twice; its weights are refused by blend_slots; a source
  ///                       would exceed its limit before the run ends; first positions do not
  ///                       ascend from 0; a step or `train_samples` is beyond `most_steps` or
  ///                       `most_positions`. The message says the step.
  schedule(std::span<const schedule_segment> segments, std::vector<source_limit> limits,
           const first_position& first_position_of,
           std::optional<std::int64_t> train_samples = std::nullopt);

  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(limits_.size()); }

  /// Where each segment begins, as the run counts its steps.
  std::span<const segment_begin> begins() const noexcept { return begins_; }

  /// Positions from here on are not served: `train_samples`, or, without it, the first that a limit
  /// forbids; else `unbounded`.
  std::int64_t end() const noexcept { return end_; }

  /// What forbids positions from end() on where no `train_samples` was given.
  const std::optional<exceeded_limit>& exceeded() const noexcept { return exceeded_; }

  /// @pre 0 <= position < end()
  blend_place at(std::int64_t position) const noexcept {
    const segment& here = segment_of(position);
    const blend_place place = here.slots.at(position - here.begin);
    const entry& source = here.entries[static_cast<std::size_t>(place.source)];
    return {source.source, source.taken_before + place.k};
  }

  /// The inverse of `at`; nothing if the run does not come to it.
  /// @pre 0 <= source < source_count(), 0 <= k
  std::optional<std::int64_t> position_of(blend_place place) const noexcept;

  /// How many of the first `positions` samples of the run are the source's.
  /// @pre 0 <= source < source_count(), 0 <= positions <= end()
  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept;

 private:
  struct entry {
    std::int64_t source;
    std::int64_t taken_before;
  };
  struct segment {
    std::int64_t begin;  // position
    std::int64_t end;    // that of the next one, or `unbounded`
    blend_slots slots;
    std::vector<entry> entries;        // in the order of the weights
    std::vector<std::int64_t> places;  // [source], its place in entries, or -1
  };

  const segment& segment_of(std::int64_t position) const noexcept {
    assert(0 <= position && position < end_);
    std::size_t i = segments_.size() - 1;
    while (segments_[i].begin > position) --i;  // few, and mostly the last one
    return segments_[i];
  }
  void add(const schedule_segment& given, std::size_t number, std::int64_t begin, std::int64_t end);
  std::optional<std::int64_t> find(blend_place place, std::int64_t end) const noexcept;
  std::optional<exceeded_limit> first_exceeded(const first_position& first_position_of) const;

  std::vector<source_limit> limits_;
  std::vector<segment> segments_;
  std::vector<segment_begin> begins_;
  std::int64_t end_ = unbounded;
  std::optional<exceeded_limit> exceeded_;
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The first position of a step, as the caller says it.
///
/// @throws config_error  it is not that of an ascending sum.
inline std::int64_t checked_first_position(const schedule::first_position& first_position_of,
                                           std::int64_t step) {
  const std::int64_t position = first_position_of(step);
  if (step == 0 ? position == 0 : position >= step) return position;
  throw config_error("first_position_of(" + std::to_string(step) + ") is " +
                     std::to_string(position) + ", expected " + std::to_string(step) +
                     (step == 0 ? "" : " or more, as each step has a sample"));
}

/// The last step whose first position is at most `position`, which is below `most_positions`.
inline std::int64_t step_of(std::int64_t position,
                            const schedule::first_position& first_position_of) {
  std::int64_t low = 0;
  std::int64_t high = 1;
  while (checked_first_position(first_position_of, high) <= position) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (first_position_of(middle) <= position ? low : high) = middle;
  }
  return low;
}

inline std::string segment_text(std::size_t number, std::int64_t first_step) {
  return "segment " + std::to_string(number) + " of the schedule, from step " +
         std::to_string(first_step) + " on";
}

}  // namespace detail

inline schedule::schedule(std::span<const schedule_segment> segments,
                          std::vector<source_limit> limits, const first_position& first_position_of,
                          std::optional<std::int64_t> train_samples)
    : limits_(std::move(limits)) {
  if (segments.empty()) throw config_error("the schedule has no segment, expected one from step 0");
  if (train_samples && (*train_samples < 1 || *train_samples > most_positions)) {
    throw config_error("train_samples is " + std::to_string(*train_samples) +
                       ", expected 1 to 2^62");
  }
  std::vector<std::int64_t> begins;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::int64_t step = segments[i].first_step;
    if (i == 0 ? step != 0 : step <= segments[i - 1].first_step || step > most_steps) {
      throw config_error(
          detail::segment_text(i, step) + ": expected " +
          (i == 0 ? std::string("step 0")
                  : "a step after " + std::to_string(segments[i - 1].first_step) + ", up to 2^40"));
    }
    begins.push_back(detail::checked_first_position(first_position_of, step));
    begins_.push_back({step, begins.back()});
    if (train_samples && begins.back() >= *train_samples) {
      throw config_error(
          detail::segment_text(i, step) + ", begins at sample " + std::to_string(begins.back()) +
          ", but the run ends with train_samples = " + std::to_string(*train_samples) +
          "; leave it out, or train longer");
    }
  }
  begins.push_back(unbounded);
  for (std::size_t i = 0; i < segments.size(); ++i) add(segments[i], i, begins[i], begins[i + 1]);
  const auto exceeded = first_exceeded(first_position_of);
  if (!train_samples) {
    exceeded_ = exceeded;
    if (exceeded) end_ = exceeded->position;
    return;
  }
  end_ = *train_samples;
  if (exceeded && exceeded->position < end_) {
    const source_limit& limit = limits_[static_cast<std::size_t>(exceeded->source)];
    throw config_error("step " + std::to_string(exceeded->step) + " would take more than the " +
                       std::to_string(*limit.most_samples) + " samples allowed of source " +
                       limit.name + " (at sample " + std::to_string(exceeded->position) + " of " +
                       std::to_string(end_) +
                       "); lower its weight, allow more repetitions or train shorter");
  }
}

inline void schedule::add(const schedule_segment& given, std::size_t number, std::int64_t begin,
                          std::int64_t end) {
  if (end < begin) {
    throw config_error(detail::segment_text(number, given.first_step) +
                       ", begins after the next one: steps must not get a smaller first position");
  }
  std::vector<double> weights;
  std::vector<entry> entries;
  std::vector<std::int64_t> places(limits_.size(), -1);
  for (const weighted_source& source : given.sources) {
    if (source.source < 0 || source.source >= source_count()) {
      throw config_error(detail::segment_text(number, given.first_step) + ", names source " +
                         std::to_string(source.source) + ", expected one of the " +
                         std::to_string(source_count()) + ", counted from 0");
    }
    const auto s = static_cast<std::size_t>(source.source);
    if (places[s] != -1) {
      throw config_error(detail::segment_text(number, given.first_step) + ", names source " +
                         limits_[s].name + " twice; add up the weights");
    }
    places[s] = static_cast<std::int64_t>(entries.size());
    std::int64_t before = 0;
    for (const segment& earlier : segments_) {
      if (earlier.places[s] != -1) {
        before += earlier.slots.taken(earlier.places[s], earlier.end - earlier.begin);
      }
    }
    entries.push_back({source.source, before});
    weights.push_back(source.weight);
  }
  try {
    segments_.push_back({begin, end, blend_slots(weights), std::move(entries), std::move(places)});
  } catch (const config_error& e) {
    throw config_error(detail::segment_text(number, given.first_step) + ": " + e.what());
  }
}

inline std::optional<std::int64_t> schedule::find(blend_place place,
                                                  std::int64_t end) const noexcept {
  for (std::size_t i = segments_.size(); i-- != 0;) {  // mostly the last one
    const segment& here = segments_[i];
    const std::int64_t at = here.places[static_cast<std::size_t>(place.source)];
    if (at == -1) continue;
    const std::int64_t k = place.k - here.entries[static_cast<std::size_t>(at)].taken_before;
    if (k < 0) continue;
    // Its position may be beyond 64 bits: then it is beyond the end, too.
    const std::int64_t room = (unbounded - here.begin) / here.slots.period() - 1;
    if (k / here.slots.slots(at) > room) return std::nullopt;
    const std::int64_t position = here.begin + here.slots.position_of({at, k});
    return position < std::min(here.end, end) ? std::optional(position) : std::nullopt;
  }
  return std::nullopt;
}

inline std::optional<std::int64_t> schedule::position_of(blend_place place) const noexcept {
  assert(0 <= place.source && place.source < source_count() && 0 <= place.k);
  return find(place, end_);
}

inline std::int64_t schedule::taken(std::int64_t source, std::int64_t positions) const noexcept {
  assert(0 <= source && source < source_count() && 0 <= positions);
  std::int64_t sum = 0;
  for (const segment& here : segments_) {
    const std::int64_t at = here.places[static_cast<std::size_t>(source)];
    if (at == -1 || here.begin >= positions) continue;
    sum += here.slots.taken(at, std::min(positions, here.end) - here.begin);
  }
  return sum;
}

inline std::optional<exceeded_limit> schedule::first_exceeded(
    const first_position& first_position_of) const {
  std::optional<exceeded_limit> first;
  for (std::int64_t s = 0; s < source_count(); ++s) {
    const auto& most = limits_[static_cast<std::size_t>(s)].most_samples;
    if (!most) continue;
    const auto position = find({s, *most}, most_positions);
    if (position && (!first || *position < first->position)) first = {{s, *position, 0}};
  }
  if (first) first->step = detail::step_of(first->position, first_position_of);
  return first;
}

}  // namespace millrace::dataset
