// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace millrace::loader {

/// Nanoseconds of the steady clock: what telemetry is told begins and ends in. One for all threads:
/// a time that another has read and passed on is not in the future.
///
/// A reading takes some 40 ns, so what follows each other shares one: the end of a stage is the
/// begin of the next. The processor's counter, read in order as that takes, is no cheaper.
inline std::int64_t now_ns() noexcept {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace millrace::loader
