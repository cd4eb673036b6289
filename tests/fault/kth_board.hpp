// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace millrace::test {

/// The report of the preloaded library. It is stored in a file that the library maps into memory.
/// fail_kth.py uses the same layout.
struct board {
  std::array<std::atomic<std::uint64_t>, 32> calls;
  std::atomic<std::uint64_t> fired;  // number of calls that failed as planned
  std::array<char, 768> first;       // the first of these calls: function and path
};

}  // namespace millrace::test
