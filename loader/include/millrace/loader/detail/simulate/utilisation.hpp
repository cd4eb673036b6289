// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace millrace::loader {

/// What MLPerf Storage asks of a storage system for its larger models.
inline constexpr double passing_utilisation = 0.9;

/// MLPerf Storage's accelerator utilisation: time that an accelerator computed over the time from
/// the end of its first step to the end of its last one. 1 where it never waited.
inline double accelerator_utilisation(std::int64_t compute_ns, std::int64_t elapsed_ns) noexcept {
  return elapsed_ns == 0 ? 1 : static_cast<double>(compute_ns) / static_cast<double>(elapsed_ns);
}

/// A loader as a queue whose times are all known, and so the time between its batches:
///
///   threads   make batches, each in `make_s`; or, where storage is told of a batch `announced`
///             batches before it is due, in what is then left of it (one thread only)
///   slots     hold a batch from when it is begun until the caller is done with it
///   caller    works `compute` seconds on each
///
/// In a steady state nothing is faster than its slowest part: a thread gives a batch each `make_s`,
/// or `announced` + 1 batches in the time of one; a slot goes round in `make_s + compute`. So
///
///   period = max(compute, make_s / threads, (make_s + compute) / slots)
///   period = max(compute, make_s / (announced + 1))                      one thread, told ahead
///
/// and utilisation = compute / period. The third term never counts where there is a slot more than
/// there are threads, which is so in a `batch_loader`.
struct pipeline_model {
  double make_s = 0;
  std::int64_t threads = 1;
  std::int64_t slots = 2;
  std::int64_t announced = 0;

  /// Seconds from batch to batch.
  double period(double compute_s) const noexcept {
    assert(threads >= 1 && slots >= 1 && announced >= 0 && (announced == 0 || threads == 1));
    const auto in_flight = static_cast<double>(threads + announced);
    const double bound = std::max(compute_s, make_s / in_flight);
    if (announced > 0) return bound;
    return std::max(bound, (make_s + compute_s) / static_cast<double>(slots));
  }

  /// 0 to 1.
  double utilisation(double compute_s) const noexcept {
    const double each = period(compute_s);
    return each == 0 ? 1 : compute_s / each;
  }

  /// The shortest computation, in seconds, that is utilised so well.
  /// @pre 0 < share < 1
  double break_even(double share = passing_utilisation) const noexcept {
    assert(0 < share && share < 1);
    const double by_threads = share * make_s / static_cast<double>(threads + announced);
    if (announced > 0) return by_threads;
    return std::max(by_threads, share * make_s / (static_cast<double>(slots) - share));
  }
};

}  // namespace millrace::loader
