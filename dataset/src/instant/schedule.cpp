// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/schedule.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Calls `first_position_of` for a step and checks the result.
///
/// @throws config_error  the result is impossible: step 0 must begin at 0, and each step has at
///                       least one sample.
MILLRACE_INLINE std::int64_t checked_first_position(
    const schedule::first_position& first_position_of, std::int64_t step) {
  const std::int64_t position = first_position_of(step);
  if (step == 0 ? position == 0 : position >= step) return position;
  throw config_error("first_position_of(" + std::to_string(step) + ") is " +
                     std::to_string(position) + ", expected " + std::to_string(step) +
                     (step == 0 ? "" : " or more, because each step has at least one sample"));
}

/// Returns the last step whose first position is at most `position`.
///
/// @pre position < most_positions
MILLRACE_INLINE std::int64_t step_of(std::int64_t position,
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

MILLRACE_INLINE std::string segment_text(std::size_t number, std::int64_t first_step) {
  return "segment " + std::to_string(number) + " of the schedule, from step " +
         std::to_string(first_step) + " on";
}

}  // namespace detail

MILLRACE_INLINE schedule::schedule(std::span<const schedule_segment> segments,
                                   std::vector<source_limit> limits,
                                   const first_position& first_position_of,
                                   std::optional<std::int64_t> train_samples)
    : limits_(std::move(limits)) {
  if (segments.empty()) {
    throw config_error("the schedule has no segments, expected one that starts at step 0");
  }
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
          "; omit it, or train longer");
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

MILLRACE_INLINE void schedule::add(const schedule_segment& given, std::size_t number,
                                   std::int64_t begin, std::int64_t end) {
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

MILLRACE_INLINE std::optional<std::int64_t> schedule::find(blend_place place,
                                                           std::int64_t end) const noexcept {
  for (std::size_t i = segments_.size(); i-- != 0;) {  // usually the last segment matches
    const segment& here = segments_[i];
    const std::int64_t at = here.places[static_cast<std::size_t>(place.source)];
    if (at == -1) continue;
    const std::int64_t k = place.k - here.entries[static_cast<std::size_t>(at)].taken_before;
    if (k < 0) continue;
    // If the position would exceed 64 bits, it is beyond the end of the segment.
    const std::int64_t room = here.slots.periods_in(unbounded - here.begin) - 1;
    if (k / here.slots.slots(at) > room) return std::nullopt;
    const std::int64_t position = here.begin + here.slots.position_of({at, k});
    return position < std::min(here.end, end) ? std::optional(position) : std::nullopt;
  }
  return std::nullopt;
}

MILLRACE_INLINE std::optional<std::int64_t> schedule::position_of(
    blend_place place) const noexcept {
  assert(0 <= place.source && place.source < source_count() && 0 <= place.k);
  return find(place, end_);
}

MILLRACE_INLINE std::int64_t schedule::taken(std::int64_t source,
                                             std::int64_t positions) const noexcept {
  assert(0 <= source && source < source_count() && 0 <= positions);
  std::int64_t sum = 0;
  for (const segment& here : segments_) {
    const std::int64_t at = here.places[static_cast<std::size_t>(source)];
    if (at == -1 || here.begin >= positions) continue;
    sum += here.slots.taken(at, std::min(positions, here.end) - here.begin);
  }
  return sum;
}

MILLRACE_INLINE std::optional<exceeded_limit> schedule::first_exceeded(
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
