// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/megatron/cyclic_sampler.hpp>
#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/megatron/range_samplers.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

/// Which micro-batch of a run one is.
struct batch_number {
  std::int64_t step = 0;           ///< of the run, from 0
  std::int64_t micro_batch = 0;    ///< of the step, from 0
  std::int64_t micro_batches = 1;  ///< of the step; where none is dropped, that the last one has
  std::int64_t first_sample = 0;   ///< served sample of row 0, over all ranks and from the start
  std::int64_t consumed = 0;       ///< samples of all ranks when this one is done

  friend bool operator==(const batch_number&, const batch_number&) = default;
};

/// The micro-batches of a rank, one after another: which positions the rows of each have. Samplers
/// are those of `dataset` (spec: megatron-core, data_samplers.py); this walks along them.
class micro_batch_sequence {
 public:
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param end    of the run without edits
  /// @param edits  of single only; shared, as it must live as long
  /// @throws config_error  more is consumed than there is; or, where `options` say what a step is,
  /// a
  ///                       part of one that is no whole number of this many ranks' micro-batches;
  ///                       or as the samplers
  micro_batch_sequence(std::int64_t end, const loader_options& options,
                       std::shared_ptr<const dataset::edited_stream> edits);

  /// How many a rank gets, from where it goes on; `unbounded` for ever.
  std::int64_t count() const noexcept { return count_; }

  /// Samples of all ranks once `n` micro-batches are consumed.
  std::int64_t consumed_after(std::int64_t n) const noexcept {
    return std::min(consumed_ + n * share_.width(), end_);
  }

  /// The next one.
  ///
  /// @param positions  of its rows, in place of what it held; fewer than the batch_size, or none,
  ///                   in a last one that is short
  /// @return false behind the last one
  bool next(batch_number& number, std::vector<std::int64_t>& positions);

 private:
  void fill_cyclic(std::vector<std::int64_t>& positions);
  void check_step() const;
  std::int64_t micro_batches_of(std::int64_t step) const noexcept;

  sampler_type type_;
  dataset::data_share share_;
  dataset::batch_steps steps_;
  bool drop_last_;
  std::int64_t consumed_;
  std::int64_t end_ = unbounded;  // of the samples of single
  std::int64_t count_ = 0;
  std::int64_t served_ = 0;
  std::shared_ptr<const dataset::edited_stream> edits_;
  std::optional<dataset::full_validation_sampler> validation_;
  std::optional<dataset::cyclic_sampler> pass_;
  std::int64_t in_pass_ = 0;
};

// ---------------------------------------------------------------------------------------------

inline micro_batch_sequence::micro_batch_sequence(
    std::int64_t end, const loader_options& options,
    std::shared_ptr<const dataset::edited_stream> edits)
    : type_(options.sampler),
      share_{options.batch_size, options.world_size, options.rank},
      steps_(steps_of(options)),
      drop_last_(options.drop_last),
      consumed_(options.consumed_samples),
      edits_(std::move(edits)) {
  if (type_ == sampler_type::cyclic) {
    if (end == unbounded) {
      throw config_error(
          "the sampler cyclic needs a run with an end, as it draws an order of all its samples; "
          "give the run train_samples");
    }
    pass_.emplace(end, consumed_, share_, options.data_sharding);
    count_ = unbounded;
    return;
  }
  const std::int64_t samples = edits_ ? edits_->served_before(end) : end;
  const auto expect_at_most = [&](std::int64_t most, const std::string& what) {
    if (consumed_ <= most) return;
    throw config_error("consumed_samples is " + std::to_string(consumed_) + ", expected at most " +
                       std::to_string(most) + ", the samples " + what);
  };
  if (type_ == sampler_type::full_validation) {
    validation_.emplace(samples, share_);
    if (validation_->batches() == 0) {
      throw config_error("rank " + std::to_string(share_.rank) + " has none of the " +
                         std::to_string(samples) +
                         " samples of the full validation, expected as many as ranks at least");
    }
    if (consumed_ % share_.ranks != 0) {
      throw config_error("consumed_samples is " + std::to_string(consumed_) +
                         ", expected a multiple of the " + std::to_string(share_.ranks) +
                         " ranks in full validation");
    }
    // Ranks with fewer samples go on from their start, so that more are served than there are.
    const std::int64_t turns = validation_->eval_iterations();
    expect_at_most(turns > unbounded / share_.ranks ? unbounded : turns * share_.ranks,
                   "of the full validation");
    count_ = validation_->eval_iterations() - consumed_ / share_.ranks;
    return;
  }
  expect_at_most(samples, "there are");
  end_ = samples;
  const std::int64_t left = samples - consumed_;
  const bool is_over = left == 0 && !options.drop_last;  // be it in the middle of a step
  if ((options.global_batch_size != 0 || options.rampup) && !is_over) check_step();
  if (samples == unbounded) {
    count_ = unbounded;
    return;
  }
  count_ = left / share_.width();
  if (!options.drop_last && left % share_.width() != 0) ++count_;
}

// Else micro-batches would lie across the ends of this step and of all that follow.
inline void micro_batch_sequence::check_step() const {
  const std::int64_t step = steps_.step_of(consumed_);
  const std::int64_t part = consumed_ - steps_.first_position(step);
  if (part % share_.width() == 0) return;
  throw config_error("consumed_samples is " + std::to_string(consumed_) + ", which is " +
                     std::to_string(part) + " samples into step " + std::to_string(step) +
                     ", expected a multiple of " + std::to_string(share_.width()) +
                     " of them, the batch_size " + std::to_string(share_.micro_batch_size) +
                     " times the world_size " + std::to_string(share_.ranks) +
                     ": go on with the ranks and batch_size of before, or from the end of a step. "
                     "What a short last micro-batch has ended is at its end, and nothing follows");
}

inline std::int64_t micro_batch_sequence::micro_batches_of(std::int64_t step) const noexcept {
  const std::int64_t samples = steps_.samples_of(step);
  const std::int64_t left = end_ - steps_.first_position(step);
  if (drop_last_ || left >= samples) return samples / share_.width();
  return (left + share_.width() - 1) / share_.width();
}

inline bool micro_batch_sequence::next(batch_number& number, std::vector<std::int64_t>& positions) {
  if (served_ == count_) return false;
  const std::int64_t first = consumed_after(served_);
  ++served_;
  number.step = steps_.step_of(first);
  number.micro_batch = (first - steps_.first_position(number.step)) / share_.width();
  number.micro_batches = micro_batches_of(number.step);
  number.first_sample = first + std::min(share_.rank * share_.micro_batch_size, end_ - first);
  number.consumed = consumed_after(served_);
  positions.clear();
  if (type_ == sampler_type::cyclic) {
    fill_cyclic(positions);
  } else if (type_ == sampler_type::full_validation) {
    // Ranks with one less start again, as Megatron's iterators do.
    const std::int64_t t = first / share_.ranks;
    positions.push_back(validation_->batch(t < validation_->batches() ? t : 0).first);
  } else {
    const std::int64_t rows = std::min(share_.micro_batch_size, end_ - number.first_sample);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t n = number.first_sample + i;
      positions.push_back(edits_ ? (*edits_)[n] : n);
    }
  }
  return true;
}

inline void micro_batch_sequence::fill_cyclic(std::vector<std::int64_t>& positions) {
  if (in_pass_ == pass_->batches()) {
    pass_.emplace(pass_->next_pass());
    in_pass_ = 0;
  }
  const std::vector<std::int64_t> batch = pass_->batch(in_pass_++);
  positions.assign(batch.begin(), batch.end());
}

}  // namespace millrace::loader
