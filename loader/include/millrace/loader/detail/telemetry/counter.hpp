// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace millrace::loader {

/// A number that one thread at a time changes and any thread reads.
///
/// A change is a load and a store, not a locked instruction, and does not order other accesses.
/// Threads that take turns in changing it must synchronize their turns themselves.
class counter {
 public:
  void add(std::int64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::int64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void raise_to(std::int64_t n) noexcept {
    if (n > value()) set(n);
  }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

}  // namespace millrace::loader
