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

#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

class edited_stream;
class run;
struct cyclic_layout;

/// Which samples make a micro-batch: Megatron's `--dataloader-type`, and `--full-validation`.
enum class sampler_type : std::uint8_t {
  single,           ///< in the order of the run, once
  cyclic,           ///< one pass after another, each in an order of its own; it has no end
  full_validation,  ///< every sample once, rank by rank, batch_size 1
};

/// "single", "cyclic", "full_validation": how a state names a sampler.
inline const char* name(sampler_type type) noexcept {
  constexpr const char* names[] = {"single", "cyclic", "full_validation"};
  return names[static_cast<std::size_t>(type)];
}

/// How the samples of a run are dealt to ranks. The same on all ranks.
struct sampler_options {
  sampler_type type = sampler_type::single;
  std::int64_t batch_size = 1;                        ///< rows of a micro-batch
  std::int64_t world_size = 1;                        ///< data-parallel ranks
  std::int64_t global_batch_size = 0;                 ///< samples of a step; 0: of a micro-batch
  std::optional<rampup_batch> rampup = std::nullopt;  ///< single only
  bool data_sharding = true;                          ///< cyclic only
  bool drop_last = true;              ///< single only, as in `loader::loader_options`
  std::int64_t consumed_samples = 0;  ///< samples that all ranks were served before

  /// Samples that all ranks take in one micro-batch.
  std::int64_t width() const noexcept { return batch_size * world_size; }
  /// Samples that all ranks take in one step, after the ramp-up.
  std::int64_t samples_of_step() const noexcept {
    return global_batch_size == 0 ? width() : global_batch_size;
  }
};

/// The same options.
/// @throws config_error  an option is out of range, does not divide, or does not go with the
/// sampler
MILLRACE_EXPORT const sampler_options& check(const sampler_options& options);

/// Which micro-batch of a run one is.
struct batch_number {
  std::int64_t step = 0;           ///< of the run, from 0
  std::int64_t micro_batch = 0;    ///< of the step, from 0
  std::int64_t micro_batches = 1;  ///< of the step; without drop_last, that the last one has
  std::int64_t first_sample = 0;   ///< served sample of row 0, over all ranks and from the start
  std::int64_t consumed = 0;       ///< samples of all ranks when this one is done

  friend bool operator==(const batch_number&, const batch_number&) = default;
};

/// A row of a step: which data-parallel rank has it, and where in the rank's share of the step.
/// With b rows in a micro-batch, slot s is row s mod b of micro-batch s / b.
struct slot_place {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::int64_t slot = 0;

  friend bool operator==(const slot_place&, const slot_place&) = default;
};

/// A position where it is served.
struct served_place {
  std::int64_t sample = 0;  ///< its number among the served samples of all ranks
  std::int64_t position = 0;
  slot_place slot;
  std::int64_t pass = 0;  ///< of cyclic: the pass that it is served in

  friend bool operator==(const served_place&, const served_place&) = default;
};

/// Positions of one pass over a run, and why they are not served once in their turn.
struct explained_positions {
  position_range positions;
  std::string why;  ///< e.g. "edit 0, skip_samples: loss spike"

  friend bool operator==(const explained_positions&, const explained_positions&) = default;
};

/// What becomes of the positions of one pass while a part of the run is served. Positions in none
/// of the lists are served before or after that part, if at all. Ranges are in any order.
struct position_turns {
  std::vector<position_range> here;          ///< served in that part, in their turn
  std::vector<explained_positions> dropped;  ///< never served
  std::vector<explained_positions> again;    ///< served in that part once more, after their turn
};

/// Which positions of a run are served in which step, on which rank and in which row, and back: the
/// one place that knows Megatron's samplers, ramp-up, edits and restarts.
///
/// Served samples are numbered from the start of the run over all ranks. With W = batch_size *
/// world_size, micro-batch t of rank r is samples consumed_samples + t * W + r * batch_size and
/// those that follow:
///
///   step, micro-batch, rank, row  <->  sample  ->  position  (edits, or the draw of a pass)
///
/// A sampler that starts at `consumed_samples` knows what is served from there on. What was served
/// before depends on ranks and batch sizes of that time.
///
/// A value, of which copies share the draws of cyclic; any thread. Forward answers take O(log
/// edits) time, but the first one in a pass of cyclic draws its order: O(samples of the run).
class MILLRACE_EXPORT sampler {
 public:
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param end    positions from here on are not served: `run::end()`
  /// @param edits  single only; nothing: no edits
  /// @throws config_error  an option is out of range, does not divide, or does not go with the
  ///                       sampler; `consumed_samples` is beyond the end, or inside a micro-batch;
  ///                       or the run has too few samples, or no end where the sampler needs one
  sampler(std::int64_t end, const sampler_options& options,
          std::shared_ptr<const edited_stream> edits = nullptr);

  const sampler_options& options() const noexcept { return options_; }
  const batch_steps& steps() const noexcept { return steps_; }

  // --- forward ---

  /// Micro-batches that each rank is served from `consumed_samples` on; `unbounded` without an end.
  std::int64_t count() const noexcept { return count_; }
  /// The first served sample, and the one after the last: `unbounded` without an end.
  std::int64_t first_sample() const noexcept { return options_.consumed_samples; }
  std::int64_t end_sample() const noexcept { return end_sample_; }
  /// Samples that all ranks have consumed after `t` micro-batches.
  std::int64_t consumed_after(std::int64_t t) const noexcept {
    return std::min(options_.consumed_samples + t * options_.width(), limit_);
  }

  /// Micro-batch t of a rank, counted from `consumed_samples`.
  ///
  /// @param positions  of its rows, in place of what it held; fewer than batch_size, or none, in a
  ///                   last micro-batch that is short
  /// @pre 0 <= t < count(), 0 <= rank < world_size
  batch_number batch(std::int64_t t, std::int64_t rank, std::vector<std::int64_t>& positions) const;

  /// The served sample of a slot.
  /// @throws config_error  there is no such step, rank or slot, or it is not served
  std::int64_t sample_of(const slot_place& slot) const;
  /// The position of a served sample.
  /// @pre first_sample() <= sample < end_sample()
  std::int64_t position_of(std::int64_t sample) const;
  /// The pass of cyclic that a sample is served in; else 0.
  /// @pre as position_of
  std::int64_t pass_of(std::int64_t sample) const noexcept;

  // --- back ---

  /// Where a served sample is served.
  /// @pre first_sample() <= sample
  slot_place slot_of(std::int64_t sample) const noexcept;
  /// All places that serve one of these positions, by sample, of samples below `before`. Of cyclic,
  /// O(samples of the run) a pass.
  std::vector<served_place> all_served(std::span<const std::int64_t> positions,
                                       std::int64_t before) const;
  /// No position from here on is served as a sample below `before`.
  std::int64_t reached(std::int64_t before) const noexcept;

  // --- steps ---

  /// Slots that each rank has in a step.
  std::int64_t slots(std::int64_t step) const noexcept {
    return steps_.samples_of(step) / options_.world_size;
  }
  /// The first sample of a step.
  /// @pre 0 <= step <= last_step() + 1
  std::int64_t first_sample_of(std::int64_t step) const noexcept {
    return steps_.first_position(step) + offset_;
  }
  /// No step after it has only samples below 2^63.
  std::int64_t last_step() const noexcept {
    return steps_.step_of(unbounded) - (offset_ == 0 ? 1 : 2);
  }
  /// The first step that is served whole.
  std::int64_t first_whole_step() const noexcept {
    return steps_.done_at(options_.consumed_samples - offset_);
  }
  /// The step after the last one of which all samples are served, and are below `before`.
  std::int64_t end_of_whole_steps(std::int64_t before = unbounded) const noexcept;

  // --- what an audit needs ---

  /// What becomes of the positions of each pass that samples `begin` up to but without `end` serve
  /// one of; a pass of which they serve none is not there. O(end - begin) of cyclic, else O(edits).
  /// @pre first_sample() <= begin <= end <= end_sample()
  std::map<std::int64_t, position_turns> turns(std::int64_t begin, std::int64_t end) const;
  /// The dropped positions of a pass.
  std::vector<explained_positions> dropped_in(std::int64_t pass) const;
  /// Positions that edits drop between the last sample that is served before `begin` and the first
  /// from `end` on. What cyclic drops is in `turns`, in the passes that are served there.
  /// @pre as turns
  std::vector<position_range> dropped_between(std::int64_t begin, std::int64_t end) const;

 private:
  /// Where in the passes of cyclic a row is.
  struct drawn_place {
    std::int64_t epoch;
    std::int64_t batch;  // of the rank in the whole epoch
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
  /// Micro-batches that an epoch counts.
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
  std::int64_t end_;                // of the run without edits
  std::int64_t limit_ = unbounded;  // single: samples that there are, edits counted in
  std::int64_t end_sample_ = unbounded;
  std::int64_t count_ = unbounded;
  std::int64_t offset_ = 0;       // samples from the begin of a step to its first micro-batch
  std::int64_t first_epoch_ = 0;  // cyclic: the epoch that consumed_samples is in
  std::int64_t first_batch_ = 0;  // and the micro-batch in it
  std::shared_ptr<const edited_stream> edits_;
  std::shared_ptr<draws> draws_;
};

/// The stream of a run with edits. Blocked documents are looked up in the run.
///
/// @throws config_error  as `edited_stream`; documents are blocked that the run does not have; or
///                       documents are blocked, and the run has no end
/// @throws io_error, format_error  a dataset with blocked documents cannot be read
MILLRACE_EXPORT edited_stream edited_positions(const run& order, std::span<const edit> edits,
                                               const batch_steps& steps);

}  // namespace millrace::dataset
