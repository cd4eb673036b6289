// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/dataset/detail/instant/instant_options.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

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
class MILLRACE_EXPORT schedule {
 public:
  /// The first position of a step: step times global batch where that is constant, a sum where it
  /// ramps up. It is 0 of step 0 and ascends with each step. It is asked for steps up to
  /// `most_steps`, and for later ones only where positions below `most_positions` are half as far.
  using first_position = first_position_function;

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

}  // namespace millrace::dataset
