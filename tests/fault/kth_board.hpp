// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace millrace::test {

/// Where the preloaded library reports: a file that it maps. fail_kth.py has the same layout.
struct board {
  std::array<std::atomic<std::uint64_t>, 32> calls;
  std::atomic<std::uint64_t> fired;  // how many calls the fault struck
  std::array<char, 768> first;       // the first of them: function and path
};

}  // namespace millrace::test
