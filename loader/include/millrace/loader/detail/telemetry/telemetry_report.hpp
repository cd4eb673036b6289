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

/// What a loader's telemetry knew at some time, of this rank and since the loader was made.
/// The wait for the first batch is told apart: it is start-up, and in no other figure.
struct telemetry_report {
  std::int64_t rank = 0;
  std::int64_t batches = 0;                 ///< that the caller got, the first included
  std::int64_t first_wait_ns = 0;           ///< for the first of them
  std::int64_t elapsed_ns = 0;              ///< from the first batch to the last
  duration_counts waits;                    ///< of the caller, in next()
  std::array<stall_counts, 4> stalls{};     ///< by stall_cause
  std::array<duration_counts, 4> stages{};  ///< by loader_stage: how long each took
  duration_counts slot_waits;               ///< of the producer, for a slot to fill

  std::int64_t slots = 0;  ///< of the ring
  std::vector<std::int64_t>
      occupancy;  ///< times that so many batches were ready when one was asked for

  std::int64_t bytes = 0;         ///< of tokens that were read
  std::int64_t major_faults = 0;  ///< of the thread that reads; may be some 32 reads behind
  std::vector<mixture_share> mixture;

  /// Share of the time that the caller spent waiting for batches, 0 to 1.
  double data_wait_share() const noexcept {
    return elapsed_ns == 0 ? 0
                           : static_cast<double>(waits.total_ns) / static_cast<double>(elapsed_ns);
  }

  /// Batches ready when one was asked for, on average.
  double mean_occupancy() const noexcept {
    double asked = 0;
    double ready = 0;
    for (std::size_t i = 0; i < occupancy.size(); ++i) {
      asked += static_cast<double>(occupancy[i]);
      ready += static_cast<double>(occupancy[i]) * static_cast<double>(i);
    }
    return asked == 0 ? 0 : ready / asked;
  }

  /// The largest difference between what a source gave and was to give, as a share of all samples.
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
