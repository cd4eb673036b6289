// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>

namespace millrace::loader {

namespace detail {

inline std::int64_t steady_ns() noexcept {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

#if defined(__x86_64__)
/// The processor's counter as nanoseconds: half the price of the steady clock, which reads it too.
struct tick_scale {
  bool usable = false;  ///< the kernel trusts it: it ticks evenly, and alike on all processors
  std::int64_t first_tick = 0;
  std::int64_t first_ns = 0;
  double ns_per_tick = 0;

  /// Behind what the thread has read before: unfenced, the counter may be read while a load that
  /// precedes it still waits for another processor, and time goes back between two threads.
  static std::int64_t ticks() noexcept {
    __builtin_ia32_lfence();
    return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
  }

  static tick_scale measure() {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    if (!(file >> source) || source != "tsc") return {};
    const tick_scale first = pair();
    tick_scale last = pair();
    // 50 ns of error in 2 ms: 25 us in a second, on any duration alike.
    while (last.first_ns - first.first_ns < 2'000'000) last = pair();
    const std::int64_t ticks = last.first_tick - first.first_tick;
    if (ticks <= 0) return {};
    return {true, last.first_tick, last.first_ns,
            static_cast<double>(last.first_ns - first.first_ns) / static_cast<double>(ticks)};
  }

  /// Both clocks at one time: of a few tries the one that took the shortest.
  static tick_scale pair() noexcept {
    tick_scale best;
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < 8; ++i) {
      const std::int64_t before = ticks();
      const std::int64_t ns = steady_ns();
      const std::int64_t took = ticks() - before;
      if (took >= shortest) continue;
      shortest = took;
      best.first_tick = before + took / 2;
      best.first_ns = ns;
    }
    return best;
  }
};
#endif

}  // namespace detail

/// Nanoseconds that only go up: what telemetry is told begins and ends in. Near the steady clock
/// when first called, which takes 2 ms, but to be compared with itself alone.
///
/// A reading takes some 10 to 30 ns, so what follows each other shares one: the end of a stage is
/// the begin of the next.
inline std::int64_t now_ns() noexcept {
#if defined(__x86_64__)
  static const detail::tick_scale scale = detail::tick_scale::measure();
  if (scale.usable) {
    const auto ticks = static_cast<double>(detail::tick_scale::ticks() - scale.first_tick);
    return scale.first_ns + static_cast<std::int64_t>(ticks * scale.ns_per_tick);
  }
#endif
  return detail::steady_ns();
}

}  // namespace millrace::loader
