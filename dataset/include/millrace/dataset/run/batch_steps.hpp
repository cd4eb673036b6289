// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::dataset {

/// Megatron's `--rampup-batch-size START INCREMENT SAMPLES`: steps of START samples first, then of
/// INCREMENT more, until after SAMPLES samples they have the whole global batch.
struct rampup_batch {
  std::int64_t start = 0;
  std::int64_t increment = 0;
  std::int64_t samples = 0;

  friend bool operator==(const rampup_batch&, const rampup_batch&) = default;
};

/// @throws config_error  a number is out of range, or the steps do not reach the global batch.
inline void check(const rampup_batch& rampup, std::int64_t global_batch) {
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw config_error("rampup_batch " + std::to_string(rampup.start) + ' ' +
                       std::to_string(rampup.increment) + ' ' + std::to_string(rampup.samples) +
                       ": " + what + ", expected " + expected);
  };
  if (rampup.start < 1 || rampup.start >= global_batch) {
    refuse("it starts with " + std::to_string(rampup.start) + " samples a step",
           "1 or more, and less than the global batch of " + std::to_string(global_batch));
  }
  if (rampup.increment < 1 || (global_batch - rampup.start) % rampup.increment != 0) {
    refuse("the increment is " + std::to_string(rampup.increment),
           "a divisor of " + std::to_string(global_batch - rampup.start) +
               ", from the first batch to the global one");
  }
  if (rampup.samples < 1 || rampup.samples > std::int64_t{1} << 53) {
    refuse("it takes " + std::to_string(rampup.samples) + " samples", "1 to 2^53");
  }
}

/// How many samples each step takes, and where it begins: constant, or ramped up as megatron-core's
/// num_microbatches_calculator does, division in double precision included. Immutable; any thread.
class batch_steps {
 public:
  /// @throws config_error  as `check`
  explicit batch_steps(std::int64_t global_batch, const std::optional<rampup_batch>& rampup = {});

  /// Samples of a step.
  /// @pre 0 <= step
  std::int64_t samples_of(std::int64_t step) const noexcept { return level_of_step(step).batch; }

  /// The first position of a step: samples of all steps before it; 2^63 - 1 where they are more.
  std::int64_t first_position(std::int64_t step) const noexcept {
    const level& l = level_of_step(step);
    std::int64_t position = 0;
    const bool wraps = __builtin_mul_overflow(step - l.step, l.batch, &position) ||
                       __builtin_add_overflow(position, l.position, &position);
    return wraps ? std::numeric_limits<std::int64_t>::max() : position;
  }

  /// Steps that are done once so many samples are consumed; one that is begun counts.
  std::int64_t done_at(std::int64_t consumed) const noexcept {
    const std::int64_t step = step_of(consumed);
    return step + (first_position(step) < consumed ? 1 : 0);
  }

  /// The step that has a position.
  /// @pre 0 <= position
  std::int64_t step_of(std::int64_t position) const noexcept {
    const level& l = *(std::ranges::upper_bound(levels_, position, {}, &level::position) - 1);
    return l.step + (position - l.position) / l.batch;
  }

 private:
  struct level {
    std::int64_t step;      // the first of its size
    std::int64_t position;  // where it begins
    std::int64_t batch;
  };

  const level& level_of_step(std::int64_t step) const noexcept {
    assert(0 <= step);
    return *(std::ranges::upper_bound(levels_, step, {}, &level::step) - 1);
  }

  std::vector<level> levels_;
};

// ---------------------------------------------------------------------------------------------

inline batch_steps::batch_steps(std::int64_t global_batch,
                                const std::optional<rampup_batch>& given) {
  if (!given) {
    levels_.push_back({0, 0, global_batch});
    return;
  }
  const rampup_batch& rampup = *given;
  check(rampup, global_batch);
  const std::int64_t increments = (global_batch - rampup.start) / rampup.increment;
  const double per_increment =
      static_cast<double>(rampup.samples) / static_cast<double>(increments);
  const auto batch_at = [&](std::int64_t consumed) {
    if (consumed > rampup.samples) return global_batch;
    const auto done = static_cast<std::int64_t>(static_cast<double>(consumed) / per_increment);
    return std::min(global_batch, rampup.start + done * rampup.increment);
  };
  level l{0, 0, rampup.start};
  for (;;) {
    levels_.push_back(l);
    if (l.batch == global_batch) return;
    // The first step that has another size: sizes never shrink, so it is found by halving.
    std::int64_t same = 0;
    std::int64_t other = rampup.samples / l.batch + 2;
    while (other - same > 1) {
      const std::int64_t middle = same + (other - same) / 2;
      (batch_at(l.position + middle * l.batch) == l.batch ? same : other) = middle;
    }
    l.step += other;
    l.position += other * l.batch;
    l.batch = batch_at(l.position);
  }
}

}  // namespace millrace::dataset
