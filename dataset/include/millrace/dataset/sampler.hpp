// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

// Example:
//
//     // Which sample does rank 7 of 8 have in row 0 of step 123, with 4 rows in a micro-batch?
//     const millrace::dataset::sampler ranks(1'000'000, {.batch_size = 4, .world_size = 8});
//     const std::int64_t sample = ranks.sample_of({.step = 123, .rank = 7, .slot = 0});
//     const std::int64_t position = ranks.position_of(sample);

namespace millrace::dataset {

class edited_stream;
class run;
struct cyclic_layout;

/// The rule that assigns samples to micro-batches: Megatron's `--dataloader-type` and
/// `--full-validation`.
enum class sampler_type : std::uint8_t {
  single,           ///< every sample once, in the order of the run
  cyclic,           ///< pass after pass, each with its own shuffle; has no end
  full_validation,  ///< every sample, dealt to the ranks in turn; batch_size 1
};

/// The sampler's name in a state: "single", "cyclic" or "full_validation".
inline const char* name(sampler_type type) noexcept {
  constexpr const char* names[] = {"single", "cyclic", "full_validation"};
  return names[static_cast<std::size_t>(type)];
}

/// Options that determine how samples of a run are assigned to ranks. They must be the same on all
/// ranks.
struct sampler_options {
  sampler_type type = sampler_type::single;
  std::int64_t batch_size = 1;                        ///< rows per micro-batch
  std::int64_t world_size = 1;                        ///< data-parallel ranks
  std::int64_t global_batch_size = 0;                 ///< samples per step; 0: width()
  std::optional<rampup_batch> rampup = std::nullopt;  ///< single only
  bool data_sharding = true;                          ///< cyclic only
  bool drop_last = true;              ///< single only, as in `loader::loader_options`
  std::int64_t consumed_samples = 0;  ///< samples served before, over all ranks

  /// Samples per micro-batch, over all ranks.
  std::int64_t width() const noexcept { return batch_size * world_size; }
  /// Samples per step, over all ranks, after the ramp-up.
  std::int64_t samples_of_step() const noexcept {
    return global_batch_size == 0 ? width() : global_batch_size;
  }
};

/// Returns `options` unchanged.
/// @throws config_error  an option is out of range or does not fit the sampler, or the samples of a
///                       step are not a multiple of width()
MILLRACE_EXPORT const sampler_options& check(const sampler_options& options);

/// Identifies a micro-batch of a run.
struct batch_number {
  std::int64_t step = 0;           ///< index of the step in the run
  std::int64_t micro_batch = 0;    ///< index of the micro-batch in the step
  std::int64_t micro_batches = 1;  ///< per step; without drop_last, the last step may have fewer
  /// Index of the sample in row 0, among the served samples of all ranks.
  std::int64_t first_sample = 0;
  std::int64_t consumed = 0;  ///< samples that all ranks have consumed after this micro-batch

  friend bool operator==(const batch_number&, const batch_number&) = default;
};

/// Identifies a row of a step by its data-parallel rank and its slot. The slot is an index into all
/// rows that the rank has in the step: with b rows per micro-batch, slot s is row s mod b of
/// micro-batch floor(s / b).
struct slot_place {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::int64_t slot = 0;

  friend bool operator==(const slot_place&, const slot_place&) = default;
};

/// A position, and the place that serves it.
struct served_place {
  std::int64_t sample = 0;  ///< index among the served samples of all ranks
  std::int64_t position = 0;
  slot_place slot;
  std::int64_t pass = 0;  ///< cyclic only: the pass that serves it

  friend bool operator==(const served_place&, const served_place&) = default;
};

/// Positions of one pass over a run, and the reason why they are not served exactly once.
struct explained_positions {
  position_range positions;
  std::string why;  ///< e.g. "edit 0, skip_samples: loss spike"

  friend bool operator==(const explained_positions&, const explained_positions&) = default;
};

/// Describes what happens to the positions of one pass while a part of the run is served. A
/// position that is in no list is not served in that part, but may be served before or after it.
/// Each list may be in any order.
struct position_turns {
  std::vector<position_range> here;          ///< served for the first time in that part
  std::vector<explained_positions> dropped;  ///< never served
  std::vector<explained_positions> again;    ///< served again in that part
};

/// Maps each (step, rank, row) to the position of the run that it serves, and back. Only this class
/// implements how Megatron's samplers, batch-size ramp-ups, edits and resuming affect this mapping.
///
/// Served samples are numbered from the start of the run, over all ranks. With W = batch_size *
/// world_size, the first sample of micro-batch t of rank r is consumed_samples + t * W + r *
/// batch_size. The mapping goes through this sample number:
///
///   step, micro-batch, rank, row  <->  sample  ->  position  (by edits, or the shuffle of a pass)
///
/// A sampler describes only the samples from `consumed_samples` on. Earlier samples may have been
/// served with a different number of ranks or different batch sizes.
///
/// Example: print the positions of rank 3's first micro-batch.
///
///     void print(const millrace::dataset::run& order) {
///       const millrace::dataset::sampler sampler(order.end(), {.batch_size = 8, .world_size = 4});
///       std::vector<std::int64_t> positions;
///       sampler.batch(0, 3, positions);
///       for (const std::int64_t position : positions) std::cout << position << '\n';
///     }
///
/// A value type; copies share the shuffles of the `cyclic` sampler. Thread-safe. Lookups of
/// positions take O(log edits) time. With the `cyclic` sampler, the first lookup in a pass also
/// shuffles the pass, which takes O(samples of the run).
class MILLRACE_EXPORT sampler {
 public:
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param end    number of positions: `run::end()`
  /// @param edits  for the `single` sampler only; null: no edits
  /// @throws config_error  as `check`; there are edits although the sampler is not `single`;
  ///                       `consumed_samples` is after the end or inside a micro-batch; or the run
  ///                       has too few samples, or has no end although the sampler needs one
  sampler(std::int64_t end, const sampler_options& options,
          std::shared_ptr<const edited_stream> edits = nullptr);

  const sampler_options& options() const noexcept { return options_; }
  const batch_steps& steps() const noexcept { return steps_; }

  // --- from steps and ranks to positions ---

  /// Micro-batches per rank from `consumed_samples` on; `unbounded` if the samples never end.
  std::int64_t count() const noexcept { return count_; }
  /// The served samples are [first_sample(), end_sample()); the end may be `unbounded`.
  std::int64_t first_sample() const noexcept { return options_.consumed_samples; }
  std::int64_t end_sample() const noexcept { return end_sample_; }
  /// Samples consumed by all ranks after `t` micro-batches.
  std::int64_t consumed_after(std::int64_t t) const noexcept {
    return std::min(options_.consumed_samples + t * options_.width(), limit_);
  }

  /// Micro-batch t of a rank, counted from `consumed_samples`.
  ///
  /// @param positions  replaced by the positions of the micro-batch's rows; a short last
  ///                   micro-batch has fewer than batch_size rows, or none
  /// @pre 0 <= t < count(), 0 <= rank < world_size
  batch_number batch(std::int64_t t, std::int64_t rank, std::vector<std::int64_t>& positions) const;

  /// The served sample of a slot.
  /// @throws config_error  the step, rank or slot does not exist or is not served
  std::int64_t sample_of(const slot_place& slot) const;
  /// The position of a served sample.
  /// @pre first_sample() <= sample < end_sample()
  std::int64_t position_of(std::int64_t sample) const;
  /// For the `cyclic` sampler, the pass that serves a sample; otherwise 0.
  /// @pre as `position_of`
  std::int64_t pass_of(std::int64_t sample) const noexcept;

  // --- from positions and samples to steps and ranks ---

  /// The slot that serves a sample.
  /// @pre first_sample() <= sample
  slot_place slot_of(std::int64_t sample) const noexcept;
  /// Returns all places where a sample below `before` serves one of the given positions, sorted by
  /// sample. For the `cyclic` sampler, takes O(samples of the run) per pass.
  std::vector<served_place> all_served(std::span<const std::int64_t> positions,
                                       std::int64_t before) const;
  /// Returns a bound: samples below `before` serve only positions below the bound.
  std::int64_t reached(std::int64_t before) const noexcept;

  // --- steps ---

  /// Number of slots that each rank has in a step.
  std::int64_t slots(std::int64_t step) const noexcept {
    return steps_.samples_of(step) / options_.world_size;
  }
  /// The first sample of a step.
  /// @pre 0 <= step <= last_step() + 1
  std::int64_t first_sample_of(std::int64_t step) const noexcept {
    return steps_.first_position(step) + offset_;
  }
  /// The last step whose samples all have indices below 2^63.
  std::int64_t last_step() const noexcept {
    return steps_.step_of(unbounded) - (offset_ == 0 ? 1 : 2);
  }
  /// The first step that is served completely.
  std::int64_t first_whole_step() const noexcept {
    return steps_.done_at(options_.consumed_samples - offset_);
  }
  /// The step after the last complete step. A step is complete if all its samples are served and
  /// are below `before`.
  std::int64_t end_of_whole_steps(std::int64_t before = unbounded) const noexcept;

  // --- for audits ---

  /// For each pass that serves a sample in [begin, end), returns what happens to the positions of
  /// that pass while these samples are served. The map's key is the pass. Takes O(end - begin) time
  /// for the `cyclic` sampler, otherwise O(edits).
  /// @pre first_sample() <= begin <= end <= end_sample()
  std::map<std::int64_t, position_turns> turns(std::int64_t begin, std::int64_t end) const;
  /// Returns the positions of a pass that are dropped.
  std::vector<explained_positions> dropped_in(std::int64_t pass) const;
  /// Returns the positions that edits drop between the last sample before `begin` and the first
  /// sample at or after `end`. For the positions that the `cyclic` sampler drops, see `turns`.
  /// @pre as for `turns`
  std::vector<position_range> dropped_between(std::int64_t begin, std::int64_t end) const;

 private:
  /// The place of a micro-batch in the passes of the `cyclic` sampler.
  struct drawn_place {
    std::int64_t epoch;
    std::int64_t batch;  // index among the rank's micro-batches of the epoch
  };
  struct batch_range {
    std::int64_t first;
    std::int64_t last;
  };
  class draws;

  void set_up_single();
  void set_up_cyclic();
  void set_up_full_validation();
  void check_part_of_step() const;
  std::int64_t micro_batches_of(std::int64_t step) const noexcept;
  cyclic_layout layout() const noexcept;
  /// Micro-batches per epoch and rank, without the extra micro-batch that some ranks may have.
  std::int64_t counted() const noexcept;
  drawn_place drawn_place_of(std::int64_t t, std::int64_t rank) const noexcept;
  std::optional<std::int64_t> turn_of(const drawn_place& place, std::int64_t rank) const noexcept;
  batch_range drawn_batches(std::int64_t rank, std::int64_t epoch) const noexcept;
  void find_drawn(std::span<const std::int64_t> positions, std::int64_t before,
                  std::vector<served_place>& found) const;
  void add_place(std::int64_t sample, std::int64_t position, std::int64_t pass,
                 std::vector<served_place>& found) const {
    found.push_back({sample, position, slot_of(sample), pass});
  }

  sampler_options options_;
  batch_steps steps_;
  std::int64_t end_;                // positions of the run, without edits
  std::int64_t limit_ = unbounded;  // single: number of samples, with edits
  std::int64_t end_sample_ = unbounded;
  std::int64_t count_ = unbounded;
  std::int64_t offset_ = 0;       // shift of the start of every step, in samples
  std::int64_t first_epoch_ = 0;  // cyclic: the epoch of consumed_samples
  std::int64_t first_batch_ = 0;  // cyclic: the micro-batch of that epoch
  std::shared_ptr<const edited_stream> edits_;
  std::shared_ptr<draws> draws_;
};

/// Returns the stream that a run serves with edits. Finds blocked documents in the run.
///
/// @throws config_error  as `edited_stream`; blocked documents do not exist in the run; or the run
///                       has no end although documents are blocked
/// @throws io_error, format_error  a dataset with blocked documents cannot be read
MILLRACE_EXPORT edited_stream edited_positions(const run& order, std::span<const edit> edits,
                                               const batch_steps& steps);

}  // namespace millrace::dataset
