// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace millrace::bench {

inline constexpr std::int64_t longest_spin_ns = 1'000'000'000;

/// A time limit on the device, in nanoseconds since its construction. It also ends after a number of
/// looks at the clock, each of which takes several nanoseconds: a clock that stands still, or that is
/// set back, must not hang the device.
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

  std::int64_t left_;  // looks at the clock
  unsigned long long end_;
};

}  // namespace millrace::bench
