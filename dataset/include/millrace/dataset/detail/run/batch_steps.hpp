// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Megatron's `--rampup-batch-size START INCREMENT SAMPLES`: the batch size starts at START and
/// grows by INCREMENT until it reaches the global batch size after SAMPLES samples.
struct rampup_batch {
  std::int64_t start = 0;
  std::int64_t increment = 0;
  std::int64_t samples = 0;

  friend bool operator==(const rampup_batch&, const rampup_batch&) = default;
};

/// @throws config_error  a number is out of range, or the increments do not reach the global batch.
MILLRACE_EXPORT void check(const rampup_batch& rampup, std::int64_t global_batch);

/// The batch size and first position of each step: constant, or ramped up exactly like
/// megatron-core's num_microbatches_calculator, including its division in double precision.
/// Immutable, thread-safe.
class MILLRACE_EXPORT batch_steps {
 public:
  /// @throws config_error  as `check`
  explicit batch_steps(std::int64_t global_batch, const std::optional<rampup_batch>& rampup = {});

  /// Number of samples in a step.
  /// @pre 0 <= step
  std::int64_t samples_of(std::int64_t step) const noexcept { return level_of_step(step).batch; }

  /// The first position of a step: the number of samples in all earlier steps, limited to 2^63 - 1.
  std::int64_t first_position(std::int64_t step) const noexcept {
    const level& l = level_of_step(step);
    std::int64_t position = 0;
    const bool wraps = __builtin_mul_overflow(step - l.step, l.batch, &position) ||
                       __builtin_add_overflow(position, l.position, &position);
    return wraps ? std::numeric_limits<std::int64_t>::max() : position;
  }

  /// Number of steps that have begun when `consumed` samples have been consumed. A step counts even
  /// if it was consumed only in part.
  std::int64_t done_at(std::int64_t consumed) const noexcept {
    const std::int64_t step = step_of(consumed);
    return step + (first_position(step) < consumed ? 1 : 0);
  }

  /// The step that contains a position.
  /// @pre 0 <= position
  std::int64_t step_of(std::int64_t position) const noexcept {
    const level& l = *(std::ranges::upper_bound(levels_, position, {}, &level::position) - 1);
    return l.step + (position - l.position) / l.batch;
  }

 private:
  struct level {
    std::int64_t step;      // first step with this batch size
    std::int64_t position;  // first position of that step
    std::int64_t batch;
  };

  const level& level_of_step(std::int64_t step) const noexcept {
    assert(0 <= step);
    return *(std::ranges::upper_bound(levels_, step, {}, &level::step) - 1);
  }

  std::vector<level> levels_;
};

}  // namespace millrace::dataset
