// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>

/// Simulates faults of system calls that the kernel cannot produce on demand. The functions in
/// faulty_calls.cpp replace those of libc in each program that links the file. While no fault is
/// set, they pass all calls to the kernel.
namespace millrace::test {

/// Selects which calls of one kind fail, and with which error code.
struct call_fault {
  std::atomic<int> code{0};     ///< errno; 0: no fault
  std::atomic<int> passing{0};  ///< number of calls that still succeed before the first failure
  std::atomic<int> failing{0};  ///< number of calls that still fail after the `passing` ones
  std::atomic<int> failed{0};   ///< number of calls that have failed so far

  /// Counts one call. Returns whether the call must fail.
  bool strikes() noexcept {
    if (code == 0) return false;
    if (passing.load() > 0 && passing.fetch_sub(1) > 0) return false;
    if (failing.load() <= 0 || failing.fetch_sub(1) <= 0) return false;
    ++failed;
    return true;
  }
};

inline call_fault open_fault;
inline call_fault read_fault;  ///< for preadv2 without RWF_NOWAIT
inline call_fault map_fault;   ///< for mmap of files
inline call_fault flock_fault;
inline std::atomic<int> nowait_code{
    0};  ///< for preadv2 with RWF_NOWAIT; 0: no fault; -1: preadv2 reads no bytes
inline std::atomic<std::size_t> longest_read{SIZE_MAX};
inline std::atomic<std::int64_t> pretended_magic{0};  ///< type of file systems; 0: the real one

/// Sets a fault for the current scope. At the end of the scope, clears all faults of all kinds.
class fault_scope {
 public:
  fault_scope() = default;
  fault_scope(call_fault& fault, int code, int failing = INT_MAX, int passing = 0) {
    set(fault, code, failing, passing);
  }
  fault_scope(const fault_scope&) = delete;
  fault_scope& operator=(const fault_scope&) = delete;
  ~fault_scope() {
    for (call_fault* fault : {&open_fault, &read_fault, &map_fault, &flock_fault})
      set(*fault, 0, 0, 0);
    nowait_code = 0;
    longest_read = SIZE_MAX;
    pretended_magic = 0;
  }

  static void set(call_fault& fault, int code, int failing = INT_MAX, int passing = 0) {
    fault.code = 0;
    fault.failed = 0;
    fault.failing = failing;
    fault.passing = passing;
    fault.code = code;
  }
};

}  // namespace millrace::test
