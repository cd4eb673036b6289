// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace millrace::loader {

/// The result of a wait with a time limit: a batch, the end of the run, or a timeout.
///
///     for (;;) {
///       auto next = loader.next_for(100ms);
///       if (next.timed_out) {
///         check_for_signals();
///         continue;
///       }
///       if (!next.batch) break;  // after the last batch
///       use(*next.batch);
///     }
template <class Batch>
struct next_result {
  std::optional<Batch> batch;  ///< empty after the last batch or if `timed_out`
  bool timed_out = false;      ///< true if the time limit passed first; call again
};

namespace detail {

/// The deadline of a wait that begins now. A wait is limited to a year, because the clock has a
/// limited range.
inline std::chrono::steady_clock::time_point deadline_in(std::chrono::nanoseconds timeout) {
  constexpr std::chrono::nanoseconds year = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() + std::min(timeout, year);
}

}  // namespace detail

}  // namespace millrace::loader
