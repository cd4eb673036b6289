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
  /// Micro-batches, each a step, the first of which is not counted.
  std::int64_t steps = 100;
  std::chrono::nanoseconds compute{0};  ///< work on each, of which reading its bytes is a part
  /// Micro-batches that are asked for without work behind those: how fast batches can come.
  std::int64_t full_speed_steps = 100;
  std::function<void()> after_step{};  ///< of the first ones: where ranks wait for each other
};

/// What became of a simulated rank. A plain value, so that a process can send it as it lies.
struct simulated_rank {
  std::int64_t steps = 0;
  std::int64_t compute_ns = 0;     ///< of all counted steps
  std::int64_t elapsed_ns = 0;     ///< from the end of the first step to that of the last
  std::int64_t first_step_ns = 0;  ///< from the first question to the end of the first step
  std::int64_t period_ns = 0;      ///< from batch to batch where nobody works on them
  std::int64_t bytes = 0;          ///< of batches that were looked at
  std::uint32_t checksum = 0;  ///< CRC-32C of the bytes of all `steps` batches, one behind another
  duration_counts waits;       ///< in next(), of the counted steps
  std::array<stall_counts, 4> stalls{};  ///< of those, by cause
  std::int64_t major_faults = 0;

  double utilisation() const noexcept { return accelerator_utilisation(compute_ns, elapsed_ns); }
  /// The step at which utilisation is 90 %: a shorter one waits for the loader, which gives a batch
  /// each `period_ns`.
  std::int64_t break_even_ns() const noexcept {
    const pipeline_model full_speed{.make_s = static_cast<double>(period_ns) * 1e-9};
    return static_cast<std::int64_t>(full_speed.break_even() * 1e9);
  }
};

/// Micro-batches that a simulation takes from a loader with so many slots.
inline std::int64_t batches_of(const simulate_options& options, std::int64_t slots) noexcept {
  return options.steps + (options.full_speed_steps > 0 ? slots + options.full_speed_steps : 0);
}

/// Takes micro-batches as a trainer would whose work on each takes a known time, and looks at every
/// byte of them. Then takes some as fast as they come, behind those that the ring held.
///
/// @param slots  of the loader's ring
/// @throws config_error  the run has not as many batches
/// @throws error         as `batch_loader::next`
MILLRACE_EXPORT simulated_rank simulate_rank(batch_loader& loader, std::int64_t slots,
                                             const simulate_options& options);

}  // namespace millrace::loader
