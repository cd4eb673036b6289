// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>

#include <millrace/detail/export.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/simulate/utilisation.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>

namespace millrace::loader {

struct simulate_options {
  /// Number of steps; each step takes one micro-batch. The times exclude the first step.
  std::int64_t steps = 100;
  std::chrono::nanoseconds compute{0};  ///< per step; includes reading the batch's bytes
  /// Number of micro-batches that are then taken without compute time, to measure how fast the
  /// loader can serve batches. 0: no measurement.
  std::int64_t full_speed_steps = 100;
  std::function<void()> after_step{};  ///< called after each step, e.g. to synchronize ranks
};

/// The result of simulating a rank. Trivially copyable, so that one process can send the bytes to
/// another.
struct simulated_rank {
  std::int64_t steps = 0;
  std::int64_t compute_ns = 0;     ///< compute time of all steps except the first
  std::int64_t elapsed_ns = 0;     ///< from the end of the first step to the end of the last step
  std::int64_t first_step_ns = 0;  ///< from the first call of next() to the end of the first step
  std::int64_t period_ns = 0;      ///< average time per batch at full speed
  std::int64_t bytes = 0;          ///< total size of all `steps` batches
  std::uint32_t checksum = 0;      ///< CRC-32C of the concatenated bytes of all `steps` batches
  duration_counts waits;           ///< time in next(), for each step except the first
  std::array<stall_counts, 4> stalls{};  ///< the stalls among these waits, by cause
  std::int64_t major_faults = 0;

  double utilisation() const noexcept { return accelerator_utilisation(compute_ns, elapsed_ns); }
  /// The compute time per step at which utilization is 90 %. With a shorter compute time,
  /// utilization is lower, because the loader serves only one batch per `period_ns`.
  std::int64_t break_even_ns() const noexcept {
    const pipeline_model full_speed{.make_s = static_cast<double>(period_ns) * 1e-9};
    return static_cast<std::int64_t>(full_speed.break_even() * 1e9);
  }
};

/// Number of micro-batches that a simulation takes from a loader with `slots` slots.
inline std::int64_t batches_of(const simulate_options& options, std::int64_t slots) noexcept {
  return options.steps + (options.full_speed_steps > 0 ? slots + options.full_speed_steps : 0);
}

/// Takes micro-batches like a trainer with a fixed compute time per step, and reads every byte of
/// each batch. Then takes and ignores as many batches as the ring has slots, because the loader may
/// have made them during the simulated steps. Finally takes batches without compute time, and
/// measures how long the loader needs for them.
///
/// @param slots  number of slots of the loader's ring
/// @throws config_error  `steps` is below 2, or the run has too few batches
/// @throws error         see `batch_loader::next`
MILLRACE_EXPORT simulated_rank simulate_rank(batch_loader& loader, std::int64_t slots,
                                             const simulate_options& options);

}  // namespace millrace::loader
