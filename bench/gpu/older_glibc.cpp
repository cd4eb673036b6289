// SPDX-License-Identifier: Apache-2.0
//
// Programs of scripts/gpu_bundle must run with glibc 2.35. But in the static libstdc++ of newer
// systems, std::random_device calls arc4random, which glibc has only since 2.36. This file defines
// the same function with a system call.

#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" __attribute__((visibility("hidden"))) std::uint32_t arc4random() noexcept;

extern "C" std::uint32_t arc4random() noexcept {
  std::uint32_t drawn = 0;
  // A request of 4 bytes is never interrupted once the system has started.
  if (::getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn)) std::abort();
  return drawn;
}
