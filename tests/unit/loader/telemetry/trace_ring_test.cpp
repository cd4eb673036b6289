// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

TEST(TraceRing, KeepsNothingWithoutRoom) {
  trace_ring ring(0);
  ring.record({trace_kind::wait, 0, 1, 2, 3});
  EXPECT_FALSE(ring.on());
  EXPECT_TRUE(ring.events().empty());
}

TEST(TraceRing, KeepsTheLastOnesInOrder) {
  trace_ring ring(5);
  EXPECT_EQ(ring.capacity(), 8);
  for (std::int64_t i = 0; i < 21; ++i) {
    ring.record({trace_kind::gather, static_cast<std::uint8_t>(i), i, 10 * i, 10 * i + 7});
    const auto events = ring.events();
    ASSERT_EQ(events.size(), std::min<std::int64_t>(i + 1, 8));
    for (std::size_t k = 0; k < events.size(); ++k) {
      const std::int64_t number = i + 1 - std::ssize(events) + static_cast<std::int64_t>(k);
      EXPECT_EQ(events[k].micro_batch, number);
      EXPECT_EQ(events[k].kind, trace_kind::gather);
      EXPECT_EQ(events[k].detail, number);
      EXPECT_EQ(events[k].begin_ns, 10 * number);
      EXPECT_EQ(events[k].end_ns, 10 * number + 7);
    }
  }
}

// Two threads record events and one thread reads them. The reader must see only whole events. All
// numbers of an event are equal, so a mix of two events would be noticed.
TEST(TraceRing, ShowsWholeEventsAtAnySpeed) {
  trace_ring ring(16);
  std::atomic<std::int64_t> seen = 0;
  const auto record = [&](std::int64_t first) {
    for (std::int64_t i = first; i < 20'000 || seen.load() < 1000; i += 2) {
      ring.record({trace_kind::wait, 0, i, i, i});
    }
  };
  const std::jthread even(record, 0);
  const std::jthread odd(record, 1);
  while (seen.load() < 1000) {
    for (const trace_event& each : ring.events()) {
      EXPECT_EQ(each.begin_ns, each.micro_batch);
      EXPECT_EQ(each.end_ns, each.micro_batch);
      ++seen;
    }
  }
  EXPECT_LE(ring.events().size(), 16);
}

}  // namespace
}  // namespace millrace::loader
