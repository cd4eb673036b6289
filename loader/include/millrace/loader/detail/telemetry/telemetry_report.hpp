// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/mixture.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader {

/// The stalls of one cause. A stall is a wait for a batch that was not ready when the caller
/// requested it.
struct stall_counts {
  std::int64_t stalls = 0;
  std::int64_t waited_ns = 0;
};

/// A snapshot of the telemetry of one rank's loader since the loader started. The wait for the
/// first batch is startup time: it is in `first_wait_ns`, and `waits`, `stalls` and `elapsed_ns`
/// exclude it.
struct telemetry_report {
  std::int64_t rank = 0;
  std::int64_t batches = 0;                 ///< batches that the caller got, including the first
  std::int64_t first_wait_ns = 0;           ///< the caller's wait for the first batch
  std::int64_t elapsed_ns = 0;              ///< from receipt of the first batch to that of the last
  duration_counts waits;                    ///< waits of the caller in next()
  std::array<stall_counts, 4> stalls{};     ///< indexed by `stall_cause`
  std::array<duration_counts, 4> stages{};  ///< durations, indexed by `loader_stage`
  duration_counts slot_waits;               ///< waits of the producers for a slot to fill

  std::int64_t slots = 0;               ///< number of slots of the ring
  std::vector<std::int64_t> occupancy;  ///< [i]: number of requests at which i batches were ready

  std::int64_t bytes = 0;         ///< number of bytes of tokens read
  std::int64_t major_faults = 0;  ///< excludes up to 32 last reads of each thread
  std::vector<mixture_share> mixture;

  /// Share of the elapsed time that the caller spent waiting for batches, from 0 to 1.
  double data_wait_share() const noexcept {
    return elapsed_ns == 0 ? 0
                           : static_cast<double>(waits.total_ns) / static_cast<double>(elapsed_ns);
  }

  /// Average number of batches that were ready when the caller requested a batch.
  double mean_occupancy() const noexcept {
    double asked = 0;
    double ready = 0;
    for (std::size_t i = 0; i < occupancy.size(); ++i) {
      asked += static_cast<double>(occupancy[i]);
      ready += static_cast<double>(occupancy[i]) * static_cast<double>(i);
    }
    return asked == 0 ? 0 : ready / asked;
  }

  /// The largest difference between a source's number of samples and its target, divided by the
  /// number of all samples.
  double mixture_error() const noexcept {
    double samples = 0;
    double most = 0;
    for (const mixture_share& each : mixture) {
      samples += static_cast<double>(each.samples);
      most = std::max(most, std::abs(static_cast<double>(each.samples) - each.target_samples));
    }
    return samples == 0 ? 0 : most / samples;
  }
};

}  // namespace millrace::loader
