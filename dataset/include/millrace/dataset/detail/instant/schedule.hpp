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

/// The first step and position of a segment of a schedule.
struct segment_begin {
  std::int64_t step = 0;
  std::int64_t position = 0;
};

/// The number of samples that a source may serve.
struct source_limit {
  std::string name;  ///< for messages
  /// Allowed epochs times samples per epoch; nullopt: no limit. If no position below
  /// `most_positions` reaches the limit, the limit has no effect.
  std::optional<std::int64_t> most_samples;
};

/// The first sample that a limit forbids.
struct exceeded_limit {
  std::int64_t source = 0;
  std::int64_t position = 0;
  std::int64_t step = 0;
};

/// Maps a position of the run to a pair (source, k), which means sample k of that source, and back.
/// The blend of sources can change at given steps.
///
/// At the start of a segment, each source continues with its next k. So adding or removing a source
/// does not change which samples of the other sources were consumed. Definition:
/// formats/spec/instant_order.md, section 6. Thread-safe.
class MILLRACE_EXPORT schedule {
 public:
  /// A function that returns the first position of a step: the sum of the sizes of all earlier
  /// steps. Without a batch-size ramp-up, this is the step times the global batch size. The result
  /// must be 0 for step 0 and increase with each step. The function is called for steps up to
  /// `most_steps`. It is called for a larger step s only if step s / 2 begins below
  /// `most_positions`.
  using first_position = first_position_function;

  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param limits         one per source of the run; the segments' source indices refer to this
  ///                       list
  /// @param train_samples  number of positions of the run; nullopt: only limits can end the run
  /// @throws config_error  there is no segment; the first segment does not begin at step 0;
  ///                       segments do not ascend; a segment begins at or after the end of the run,
  ///                       lists an unknown source, or lists a source twice; `blend_slots` rejects
  ///                       the weights of a segment; a source would exceed its limit before the run
  ///                       ends; the first positions of the steps do not ascend from 0; a step is
  ///                       above `most_steps`; or `train_samples` is above `most_positions`. The
  ///                       message names the step.
  schedule(std::span<const schedule_segment> segments, std::vector<source_limit> limits,
           const first_position& first_position_of,
           std::optional<std::int64_t> train_samples = std::nullopt);

  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(limits_.size()); }

  /// The first step and position of each segment.
  std::span<const segment_begin> begins() const noexcept { return begins_; }

  /// The first position that is not served. This is `train_samples` if it is set. Otherwise, it is
  /// the first position that a limit forbids, or `unbounded` if no limit is ever reached.
  std::int64_t end() const noexcept { return end_; }

  /// The limit that determines end(); nullopt if `train_samples` was given or no limit is ever
  /// reached.
  const std::optional<exceeded_limit>& exceeded() const noexcept { return exceeded_; }

  /// @pre 0 <= position < end()
  blend_place at(std::int64_t position) const noexcept {
    const segment& here = segment_of(position);
    const blend_place place = here.slots.at(position - here.begin);
    const entry& source = here.entries[static_cast<std::size_t>(place.source)];
    return {source.source, source.taken_before + place.k};
  }

  /// The inverse of `at`; nullopt if the run never serves that sample.
  /// @pre 0 <= source < source_count(), 0 <= k
  std::optional<std::int64_t> position_of(blend_place place) const noexcept;

  /// Number of samples of `source` among the first `positions` samples of the run.
  /// @pre 0 <= source < source_count(), 0 <= positions <= end()
  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept;

 private:
  struct entry {
    std::int64_t source;
    std::int64_t taken_before;
  };
  struct segment {
    std::int64_t begin;  // first position of the segment
    std::int64_t end;    // first position of the next segment, or `unbounded`
    blend_slots slots;
    std::vector<entry> entries;        // in the order of the weights
    std::vector<std::int64_t> places;  // [source], its index in entries; -1 if absent
  };

  const segment& segment_of(std::int64_t position) const noexcept {
    assert(0 <= position && position < end_);
    std::size_t i = segments_.size() - 1;
    while (segments_[i].begin > position) --i;  // few segments; usually the last matches
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

/// Limits on the steps and positions of a run, so that values computed from them fit in 64 bits.

/// The largest step that an edit or a schedule can refer to. With global batches of up to 2^22
/// samples, the first position of this step does not exceed `most_positions`.
inline constexpr std::int64_t most_steps = std::int64_t{1} << 40;

/// All positions and sample counts of a run are below this number, so that the sum of two of them
/// fits in 64 bits.
inline constexpr std::int64_t most_positions = std::int64_t{1} << 62;

}  // namespace millrace::dataset
