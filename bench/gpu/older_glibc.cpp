// SPDX-License-Identifier: Apache-2.0
//
// Defines `arc4random` with a system call. The programs of scripts/gpu_bundle must run with glibc
// 2.35, but glibc has `arc4random` only since 2.36. The programs need `arc4random`, because
// std::random_device calls it in the static libstdc++ of newer systems.

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
