// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::bench {

inline constexpr std::int64_t longest_spin_ns = 1'000'000'000;

/// A time limit on the device, in nanoseconds since the construction of this object. The number of
/// clock reads is also limited, to one per nanosecond of the time limit. A read takes several
/// nanoseconds, so this second limit matters only if the clock stands still or is set back. It then
/// keeps the device from hanging.
class device_deadline {
 public:
  __device__ explicit device_deadline(std::int64_t nanoseconds)
      : left_(nanoseconds < longest_spin_ns ? nanoseconds : longest_spin_ns),
        end_(now() + static_cast<unsigned long long>(left_)) {}

  __device__ bool passed() { return --left_ < 0 || now() >= end_; }

 private:
  static __device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
  }

  std::int64_t left_;  // number of clock reads left
  unsigned long long end_;
};

}  // namespace millrace::bench
