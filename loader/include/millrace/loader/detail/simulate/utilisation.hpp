// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

namespace millrace::loader {

/// The accelerator utilization that MLPerf Storage requires for its larger models.
inline constexpr double passing_utilisation = 0.9;

/// MLPerf Storage's accelerator utilization: the compute time divided by the elapsed time, which is
/// measured from the end of the first step to the end of the last step. The result is 1 if the
/// accelerator never waited.
inline double accelerator_utilisation(std::int64_t compute_ns, std::int64_t elapsed_ns) noexcept {
  return elapsed_ns == 0 ? 1 : static_cast<double>(compute_ns) / static_cast<double>(elapsed_ns);
}

/// Models a loader as a queue with fixed times, to compute the time between batches:
///
///   threads   make batches, each in `make_s` seconds. A single thread may announce each batch to
///             storage `announced` batches early; storage then loads the batch in the meantime
///   slots     hold a batch from its start until the caller releases it
///   caller    works `compute` seconds on each batch
///
/// In a steady state, the slowest part sets the pace. A thread makes one batch per `make_s`; with
/// announcements, it makes `announced` + 1 batches in this time. A slot is reused after
/// `make_s + compute`. So
///
///   period = max(compute, make_s / threads, (make_s + compute) / slots)
///   period = max(compute, make_s / (announced + 1))                      one thread, announced > 0
///
/// and utilization = compute / period. The term with `slots` never matters if there are more slots
/// than threads, as in a `batch_loader`.
struct pipeline_model {
  double make_s = 0;
  std::int64_t threads = 1;
  std::int64_t slots = 2;
  std::int64_t announced = 0;

  /// Time between batches, in seconds.
  double period(double compute_s) const noexcept {
    assert(threads >= 1 && slots >= 1 && announced >= 0 && (announced == 0 || threads == 1));
    const auto in_flight = static_cast<double>(threads + announced);
    const double bound = std::max(compute_s, make_s / in_flight);
    if (announced > 0) return bound;
    return std::max(bound, (make_s + compute_s) / static_cast<double>(slots));
  }

  /// Utilization, from 0 to 1.
  double utilisation(double compute_s) const noexcept {
    const double each = period(compute_s);
    return each == 0 ? 1 : compute_s / each;
  }

  /// The shortest compute time per batch, in seconds, at which utilization is at least `share`.
  /// @pre 0 < share < 1
  double break_even(double share = passing_utilisation) const noexcept {
    assert(0 < share && share < 1);
    const double by_threads = share * make_s / static_cast<double>(threads + announced);
    if (announced > 0) return by_threads;
    return std::max(by_threads, share * make_s / (static_cast<double>(slots) - share));
  }
};

}  // namespace millrace::loader
