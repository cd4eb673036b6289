// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace millrace::loader {

/// The kind of a trace event. The values up to `copy` equal those of `loader_stage`.
enum class trace_kind : std::uint8_t { plan, storage, gather, copy, slot_wait, wait, ready };

/// An event from `begin_ns` to `end_ns`. An event of kind `ready` records the number of ready
/// batches at `begin_ns`.
struct trace_event {
  trace_kind kind = trace_kind::wait;
  std::uint8_t detail = 0;       ///< producer index; for `wait`: stall cause + 1, or 0
  std::int64_t micro_batch = 0;  ///< for `ready`: the number of ready batches
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Keeps the most recent events of a run, up to a fixed number. Any thread may record events,
/// without locks. Any thread may get a copy of the events. The copy omits events that are being
/// written.
class trace_ring {
 public:
  /// @param capacity  number of events to keep, rounded up to a power of two; 0: keep no events
  explicit trace_ring(std::size_t capacity) {
    if (capacity == 0) return;
    std::size_t size = 1;
    while (size < capacity) size *= 2;
    mask_ = size - 1;
    cells_ = std::make_unique<cell[]>(size);
  }

  bool on() const noexcept { return cells_ != nullptr; }
  std::size_t capacity() const noexcept { return on() ? mask_ + 1 : 0; }

  void record(const trace_event& event) noexcept {
    if (!on()) return;
    const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
    cell& c = cells_[number & mask_];
    // The version is odd while an event is written to the cell. After that, it is even, and
    // different on each lap of the ring. A reader that finds the same even version before and after
    // its read has read one complete event. Release stores and acquire loads order the accesses to
    // the event. Fences would do so too, but ThreadSanitizer does not support them.
    constexpr auto release = std::memory_order_release;
    std::uint64_t version = c.version.load(std::memory_order_relaxed);
    if (version % 2 == 1 || version > 2 * number ||
        !c.version.compare_exchange_strong(version, 2 * number + 1, std::memory_order_relaxed)) {
      return;  // another thread is writing here, or a later lap already has: drop the event
    }
    c.what.store(
        std::uint64_t{static_cast<std::uint8_t>(event.kind)} | std::uint64_t{event.detail} << 8,
        release);
    c.micro_batch.store(event.micro_batch, release);
    c.begin_ns.store(event.begin_ns, release);
    c.end_ns.store(event.end_ns, release);
    c.version.store(2 * number + 2, release);
  }

  /// Returns the events, oldest first, in the order in which they were recorded.
  std::vector<trace_event> events() const {
    std::vector<trace_event> result;
    const std::uint64_t end = next_.load(std::memory_order_acquire);
    const std::uint64_t kept = std::min<std::uint64_t>(end, capacity());
    result.reserve(static_cast<std::size_t>(kept));
    for (std::uint64_t number = end - kept; number < end; ++number) {
      const cell& c = cells_[number & mask_];
      constexpr auto acquire = std::memory_order_acquire;
      if (c.version.load(acquire) != 2 * number + 2) continue;
      const std::uint64_t what = c.what.load(acquire);
      const trace_event event = {static_cast<trace_kind>(what & 0xff),
                                 static_cast<std::uint8_t>(what >> 8), c.micro_batch.load(acquire),
                                 c.begin_ns.load(acquire), c.end_ns.load(acquire)};
      if (c.version.load(std::memory_order_relaxed) == 2 * number + 2) result.push_back(event);
    }
    return result;
  }

 private:
  struct cell {
    std::atomic<std::uint64_t> version = 0;
    std::atomic<std::uint64_t> what = 0;
    std::atomic<std::int64_t> micro_batch = 0;
    std::atomic<std::int64_t> begin_ns = 0;
    std::atomic<std::int64_t> end_ns = 0;
  };

  std::unique_ptr<cell[]> cells_;
  std::size_t mask_ = 0;
  std::atomic<std::uint64_t> next_ = 0;
};

}  // namespace millrace::loader
