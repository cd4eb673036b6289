// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

/// Makes allocations of this process fail: `operator new` throws `std::bad_alloc`, and
/// `aligned_alloc` returns null. Programs that use it compile fail_kth_allocation.cpp, which
/// replaces both. `malloc` itself never fails, so the C library is left alone.
namespace millrace::test {

struct fail_kth_allocation {
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  std::int64_t k = never;       ///< the first counted allocation that fails, from 1 on
  std::int64_t failures = 1;    ///< how many fail, one after another
  std::size_t least_bytes = 1;  ///< smaller allocations are not counted
};

/// Starts counting at 0. Nothing else of the process may allocate meanwhile.
void arm(const fail_kth_allocation& what) noexcept;

/// Allocations succeed from now on.
/// @return how many were counted
std::int64_t disarm() noexcept;

/// While one lives, allocations of its thread succeed and are not counted.
class exempt_allocations {
 public:
  exempt_allocations() noexcept;
  ~exempt_allocations();
  exempt_allocations(const exempt_allocations&) = delete;
  exempt_allocations& operator=(const exempt_allocations&) = delete;
};

}  // namespace millrace::test
