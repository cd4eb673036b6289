// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/simulate/simulate_rank.hpp>
#include <millrace/loader/loader_report.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader {

namespace detail {

// A sleep ends tens of microseconds late, so the last 200 us are a busy wait.
MILLRACE_INLINE void wait_until_ns(std::int64_t when) {
  constexpr std::int64_t margin = 200'000;
  const std::int64_t left = when - now_ns();
  if (left > margin) std::this_thread::sleep_for(std::chrono::nanoseconds(left - margin));
  while (now_ns() < when) {
  }
}

}  // namespace detail

MILLRACE_INLINE simulated_rank simulate_rank(batch_loader& loader, std::int64_t slots,
                                             const simulate_options& options) {
  if (options.steps < 2) {
    throw config_error("steps is " + std::to_string(options.steps) +
                       ", expected 2 or more: the first one is not counted");
  }
  if (loader.micro_batches() < batches_of(options, slots)) {
    throw config_error("the run has " + std::to_string(loader.micro_batches()) +
                       " micro-batches per rank, expected " +
                       std::to_string(batches_of(options, slots)) +
                       ": use fewer steps, or a longer run");
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
  const telemetry_report told = loader.observe().times;
  result.stalls = told.stalls;
  result.major_faults = told.major_faults;
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
