// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/run/batch_steps.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE batch_steps::batch_steps(std::int64_t global_batch,
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
    // Find the first step with a different batch size. Batch sizes never shrink, so a binary search
    // works.
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

MILLRACE_INLINE void check(const rampup_batch& rampup, std::int64_t global_batch) {
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

}  // namespace millrace::dataset
