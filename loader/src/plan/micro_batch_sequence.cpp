// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/plan/micro_batch_sequence.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

MILLRACE_INLINE micro_batch_sequence::micro_batch_sequence(
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
MILLRACE_INLINE void micro_batch_sequence::check_step() const {
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

MILLRACE_INLINE std::int64_t micro_batch_sequence::micro_batches_of(
    std::int64_t step) const noexcept {
  const std::int64_t samples = steps_.samples_of(step);
  const std::int64_t left = end_ - steps_.first_position(step);
  if (drop_last_ || left >= samples) return samples / share_.width();
  return (left + share_.width() - 1) / share_.width();
}

MILLRACE_INLINE bool micro_batch_sequence::next(batch_number& number,
                                                std::vector<std::int64_t>& positions) {
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

MILLRACE_INLINE void micro_batch_sequence::fill_cyclic(std::vector<std::int64_t>& positions) {
  if (in_pass_ == pass_->batches()) {
    pass_.emplace(pass_->next_pass());
    in_pass_ = 0;
  }
  const std::vector<std::int64_t> batch = pass_->batch(in_pass_++);
  positions.assign(batch.begin(), batch.end());
}

}  // namespace millrace::loader
