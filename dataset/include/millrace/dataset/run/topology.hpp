// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// Where a sample is served: in which step, on which data-parallel rank, in which slot of the
/// rank's share of the step. Slot s is row s mod b of micro-batch s / b, b the micro-batch size.
struct slot_place {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::int64_t slot = 0;

  friend bool operator==(const slot_place&, const slot_place&) = default;
};

/// How a run deals its positions to ranks: those of Megatron's `single` sampler, where steps all
/// have the global batch, or grow to it. A value; any thread.
///
///   position = first_position(step) + m * W + rank * b + row     W = b * ranks
class topology {
 public:
  /// @param rampup  Megatron's --rampup-batch-size
  /// @throws config_error  a number is out of range; or the global batch, or a batch on the way to
  ///                       it, is not a multiple of the micro-batch size times the ranks
  topology(std::int64_t ranks, std::int64_t micro_batch_size, std::int64_t global_batch_size,
           const std::optional<rampup_batch>& rampup = {})
      : share_{micro_batch_size, ranks, 0}, global_batch_size_(global_batch_size), steps_(1) {
    detail::check_sampler(1, 0, share_);
    require_whole("global_batch_size", global_batch_size);
    steps_ = batch_steps(global_batch_size, rampup);
    if (!rampup) return;
    require_whole("the first batch of the ramp-up", rampup->start);
    require_whole("the increment of the ramp-up", rampup->increment);
  }

  std::int64_t ranks() const noexcept { return share_.ranks; }
  std::int64_t micro_batch_size() const noexcept { return share_.micro_batch_size; }
  /// Samples of a step, once it is ramped up.
  std::int64_t global_batch_size() const noexcept { return global_batch_size_; }
  const batch_steps& steps() const noexcept { return steps_; }
  /// Slots that a rank has in a step.
  std::int64_t slots(std::int64_t step) const noexcept {
    return steps_.samples_of(step) / share_.ranks;
  }

  /// No step beyond it has only positions below 2^63.
  std::int64_t last_step() const noexcept {
    return steps_.step_of(std::numeric_limits<std::int64_t>::max()) - 1;
  }

  /// Steps that a run of so many samples has in whole.
  std::int64_t whole_steps(std::int64_t samples) const noexcept {
    return std::min(steps_.step_of(samples), last_step() + 1);
  }

  /// @pre 0 <= step <= last_step() + 1
  std::int64_t first_position(std::int64_t step) const noexcept {
    assert(0 <= step && step <= last_step() + 1);
    return steps_.first_position(step);
  }

  /// @throws config_error  there is no such step, rank or slot
  std::int64_t position_of(const slot_place& at) const {
    check("step", at.step, last_step());
    check("rank", at.rank, ranks() - 1);
    check("slot", at.slot, slots(at.step) - 1);
    const std::int64_t micro_batch = at.slot / micro_batch_size();
    const std::int64_t row = at.slot % micro_batch_size();
    return first_position(at.step) + micro_batch * share_.width() + at.rank * micro_batch_size() +
           row;
  }

  /// The inverse.
  /// @pre 0 <= position
  slot_place place_of(std::int64_t position) const noexcept {
    assert(0 <= position);
    const std::int64_t step = steps_.step_of(position);
    const std::int64_t in_step = position - steps_.first_position(step);
    const std::int64_t in_micro_batch = in_step % share_.width();
    return {step, in_micro_batch / micro_batch_size(),
            in_step / share_.width() * micro_batch_size() + in_micro_batch % micro_batch_size()};
  }

 private:
  void require_whole(const char* what, std::int64_t samples) const {
    if (samples >= 1 && samples % share_.width() == 0) return;
    throw config_error(std::string(what) + " is " + std::to_string(samples) +
                       ", expected a multiple of " + std::to_string(share_.width()) +
                       ", the micro-batch size " + std::to_string(share_.micro_batch_size) +
                       " times the " + std::to_string(share_.ranks) + " data-parallel ranks");
  }
  static void check(const char* what, std::int64_t found, std::int64_t last) {
    if (0 <= found && found <= last) return;
    throw config_error(std::string(what) + " is " + std::to_string(found) + ", expected 0 to " +
                       std::to_string(last));
  }

  data_share share_;
  std::int64_t global_batch_size_;
  batch_steps steps_;
};

}  // namespace millrace::dataset
