// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace millrace::test {

/// Seconds that the calling thread has run on a CPU. Unlike the time of a clock, it does not grow
/// while other programs keep the thread waiting.
inline double cpu_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

}  // namespace millrace::test
