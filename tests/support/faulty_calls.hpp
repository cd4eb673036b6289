// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>

/// Faults of system calls that the kernel cannot be made to have on demand. The calls themselves
/// are in faulty_calls.cpp, which stands before libc in the programs that link it, and passes on
/// all of them as long as no fault is set.
namespace millrace::test {

/// Which calls of one kind fail, and with what.
struct call_fault {
  std::atomic<int> code{0};     ///< 0: none
  std::atomic<int> passing{0};  ///< calls that go well before
  std::atomic<int> failing{0};  ///< calls that fail then
  std::atomic<int> failed{0};   ///< that have

  /// Whether this call is to fail.
  bool strikes() noexcept {
    if (code == 0) return false;
    if (passing.load() > 0 && passing.fetch_sub(1) > 0) return false;
    if (failing.load() <= 0 || failing.fetch_sub(1) <= 0) return false;
    ++failed;
    return true;
  }
};

inline call_fault open_fault;
inline call_fault read_fault;  ///< of preadv2, without RWF_NOWAIT
inline call_fault map_fault;   ///< of mmap of files
inline call_fault flock_fault;
inline std::atomic<int> nowait_code{
    0};  ///< of preadv2 with RWF_NOWAIT; 0: the kernel's own; -1: it reads nothing
inline std::atomic<std::size_t> longest_read{SIZE_MAX};
inline std::atomic<std::int64_t> pretended_magic{0};  ///< of every file system; 0: its own

/// A fault for a scope; at its end there is none of any kind.
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
