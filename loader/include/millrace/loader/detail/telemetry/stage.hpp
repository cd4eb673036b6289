// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace millrace::loader {

/// A stage in which a micro-batch is made.
enum class loader_stage : std::uint8_t {
  plan,     ///< finding the samples and their positions: arithmetic, and reads of index pages
  storage,  ///< waiting for bytes of data files
  gather,   ///< copying bytes that are in memory into the slot
  copy,     ///< copying from the slot to the device, or widening into int64 arrays
};
inline constexpr std::array<const char*, 4> loader_stage_names = {"plan", "storage", "gather",
                                                                  "copy"};

/// The cause of a stall: why no batch was ready when the caller requested one.
enum class stall_cause : std::uint8_t {
  storage,   ///< waiting for bytes of data files
  gather,    ///< planning and gathering, which is work of the CPU
  copy,      ///< copying to the device, or widening into int64 arrays
  consumer,  ///< the caller itself, because it held the slots too long
};
inline constexpr std::array<const char*, 4> stall_cause_names = {"storage", "gather", "copy",
                                                                 "consumer"};

inline const char* name_of(loader_stage s) noexcept {
  return loader_stage_names[static_cast<std::size_t>(s)];
}
inline const char* name_of(stall_cause c) noexcept {
  return stall_cause_names[static_cast<std::size_t>(c)];
}

/// Returns the time of the steady clock in nanoseconds. Telemetry takes all times from this clock.
/// All threads share the clock: a time that one thread has read is never in another thread's
/// future.
///
/// Reading the clock takes about 40 ns, so consecutive stages share one reading: the end of a stage
/// is the start of the next stage. Reading the CPU's time stamp counter is no faster, because the
/// reads would have to be ordered.
inline std::int64_t now_ns() noexcept {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace millrace::loader
