// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/crc32c.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/simulate/utilisation.hpp>
#include <millrace/loader/telemetry/clock.hpp>
#include <millrace/loader/telemetry/duration_histogram.hpp>

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
simulated_rank simulate_rank(batch_loader& loader, std::int64_t slots,
                             const simulate_options& options);

// ---------------------------------------------------------------------------------------------

namespace detail {

// The end of a sleep is late by tens of microseconds: the last of the time is spent looking.
inline void wait_until_ns(std::int64_t when) {
  constexpr std::int64_t margin = 200'000;
  const std::int64_t left = when - now_ns();
  if (left > margin) std::this_thread::sleep_for(std::chrono::nanoseconds(left - margin));
  while (now_ns() < when) {
  }
}

}  // namespace detail

inline simulated_rank simulate_rank(batch_loader& loader, std::int64_t slots,
                                    const simulate_options& options) {
  if (options.steps < 2) {
    throw config_error("steps is " + std::to_string(options.steps) +
                       ", expected 2 or more: the first one is not counted");
  }
  if (loader.micro_batches() < batches_of(options, slots)) {
    throw config_error("the run has " + std::to_string(loader.micro_batches()) +
                       " micro-batches for a rank, expected " +
                       std::to_string(batches_of(options, slots)) +
                       ": take fewer steps, or a longer run");
  }
  simulated_rank result;
  result.steps = options.steps;
  duration_histogram waits;
  std::int64_t first_end = 0;
  std::int64_t end = 0;
  const std::int64_t begin = now_ns();
  for (std::int64_t s = 0; s < options.steps; ++s) {
    const std::int64_t asked = now_ns();
    const std::optional<batch> b = loader.next();
    const std::int64_t got = now_ns();
    result.checksum = formats::crc32c(b->bytes(), result.checksum);
    result.bytes += static_cast<std::int64_t>(b->bytes().size());
    detail::wait_until_ns(got + options.compute.count());
    end = now_ns();
    if (s == 0) {
      first_end = end;
      result.first_step_ns = end - begin;
    } else {
      waits.add(got - asked);
      result.compute_ns += end - got;
    }
    if (options.after_step) options.after_step();
  }
  result.elapsed_ns = end - first_end;
  result.waits = waits.counts();
  if (options.full_speed_steps == 0) return result;

  std::uint32_t looked = 0;
  const auto take = [&](std::int64_t batches) {
    for (std::int64_t i = 0; i < batches; ++i) {
      looked = formats::crc32c(loader.next()->bytes(), looked);
    }
  };
  take(slots);
  const std::int64_t full_begin = now_ns();
  take(options.full_speed_steps);
  result.period_ns = (now_ns() - full_begin) / options.full_speed_steps;
  return result;
}

}  // namespace millrace::loader
