// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "support/sanitized.hpp"

/// Makes allocations of this process fail: `operator new` throws `std::bad_alloc`, and
/// `aligned_alloc` returns null. A program that includes this header must also compile
/// fail_kth_allocation.cpp, which replaces both functions. `malloc` is not replaced, so allocations
/// of the C library succeed.
namespace millrace::test {

struct fail_kth_allocation {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::int64_t k = never;       ///< index of the first allocation that fails, counted from 1
  std::int64_t failures = 1;    ///< number of consecutive allocations that fail
  std::size_t least_bytes = 1;  ///< allocations of fewer bytes are not counted
};

/// Applies `what` and restarts the count of allocations at 0. No other thread may allocate during
/// this call.
void arm(const fail_kth_allocation& what) noexcept;

/// Lets allocations succeed again.
/// @return number of allocations counted since arm()
std::int64_t disarm() noexcept;

/// False under ThreadSanitizer, whose own `operator new` takes precedence. Allocations then never
/// fail, so a test that needs failures must skip itself.
inline constexpr bool allocations_can_fail = !under_thread_sanitizer;

/// While an object of this class exists, all allocations of its thread succeed and are not counted.
class exempt_allocations {
 public:
  exempt_allocations() noexcept;
  ~exempt_allocations();
  exempt_allocations(const exempt_allocations&) = delete;
  exempt_allocations& operator=(const exempt_allocations&) = delete;
};

}  // namespace millrace::test
