// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace millrace::loader {

/// What is done to make a micro-batch.
enum class loader_stage : std::uint8_t {
  plan,     ///< which samples, and where they lie: arithmetic, and pages of an index
  storage,  ///< waiting for bytes of data files
  gather,   ///< bringing bytes that are in memory into the slot
  copy,     ///< from the slot on: to the device, or widened into int64 arrays
};
inline constexpr std::array<const char*, 4> loader_stage_names = {"plan", "storage", "gather",
                                                                  "copy"};

/// What a caller waited for that asked for a batch when none was ready.
enum class stall_cause : std::uint8_t {
  storage,   ///< bytes of data files
  gather,    ///< planning and gathering: the processor
  copy,      ///< the copy to the device, or into int64 arrays
  consumer,  ///< the caller itself: it had held the slots until it asked
};
inline constexpr std::array<const char*, 4> stall_cause_names = {"storage", "gather", "copy",
                                                                 "consumer"};

inline const char* name_of(loader_stage s) noexcept {
  return loader_stage_names[static_cast<std::size_t>(s)];
}
inline const char* name_of(stall_cause c) noexcept {
  return stall_cause_names[static_cast<std::size_t>(c)];
}

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
