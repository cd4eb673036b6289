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

/// Stalls of one cause: batches that were not ready when they were asked for.
struct stall_counts {
  std::int64_t stalls = 0;
  std::int64_t waited_ns = 0;
};

/// A snapshot of a loader's telemetry, for this rank, since the loader started. The wait for the
/// first batch is startup time; it is reported separately and is not included in any other figure.
struct telemetry_report {
  std::int64_t rank = 0;
  std::int64_t batches = 0;                 ///< batches that the caller got, including the first
  std::int64_t first_wait_ns = 0;           ///< wait for the first batch
  std::int64_t elapsed_ns = 0;              ///< from the first batch to the last
  duration_counts waits;                    ///< waits of the caller, in next()
  std::array<stall_counts, 4> stalls{};     ///< by stall_cause
  std::array<duration_counts, 4> stages{};  ///< durations by loader_stage
  duration_counts slot_waits;               ///< waits of the producers, for a slot to fill

  std::int64_t slots = 0;  ///< slots of the ring
  std::vector<std::int64_t>
      occupancy;  ///< [i]: how often i batches were ready when one was requested

  std::int64_t bytes = 0;         ///< bytes of tokens read
  std::int64_t major_faults = 0;  ///< of the reading threads, without up to 32 of their last reads
  std::vector<mixture_share> mixture;

  /// Share of the elapsed time in which the caller waited for batches, 0 to 1.
  double data_wait_share() const noexcept {
    return elapsed_ns == 0 ? 0
                           : static_cast<double>(waits.total_ns) / static_cast<double>(elapsed_ns);
  }

  /// Average number of batches ready when one was requested.
  double mean_occupancy() const noexcept {
    double asked = 0;
    double ready = 0;
    for (std::size_t i = 0; i < occupancy.size(); ++i) {
      asked += static_cast<double>(occupancy[i]);
      ready += static_cast<double>(occupancy[i]) * static_cast<double>(i);
    }
    return asked == 0 ? 0 : ready / asked;
  }

  /// The largest difference between a source's samples and its target, as a share of all samples.
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
