// SPDX-License-Identifier: Apache-2.0
//
// Programs of scripts/gpu_bundle run with glibc 2.35. The static libstdc++ of newer systems calls
// arc4random, which glibc has had since 2.36, in std::random_device. This is the same function, by
// the system call.

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
