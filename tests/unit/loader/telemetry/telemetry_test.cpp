// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/telemetry/telemetry.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/detail/batch/slot_ring.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

#include "support/sanitized.hpp"
#include "support/seed.hpp"
#include "unit/loader/telemetry/simulated_pipeline.hpp"

namespace millrace::loader {
namespace {

using test::simulate_pipeline;
using test::simulated_times;

constexpr std::int64_t us = 1'000;
constexpr std::int64_t ms = 1'000'000;

std::int64_t stalls_of(const telemetry_report& report) {
  std::int64_t all = 0;
  for (const stall_counts& each : report.stalls) all += each.stalls;
  return all;
}

const stall_counts& stalls_by(const telemetry_report& report, stall_cause cause) {
  return report.stalls[static_cast<std::size_t>(cause)];
}

TEST(Telemetry, KnowsNothingAtFirst) {
  const telemetry_report report = telemetry().report();
  EXPECT_EQ(report.batches, 0);
  EXPECT_EQ(report.data_wait_share(), 0);
  EXPECT_EQ(report.mean_occupancy(), 0);
  EXPECT_EQ(report.mixture_error(), 0);
  EXPECT_EQ(stalls_of(report), 0);
}

// The meter must count the waits and the time between them. The test reports three waits of known
// durations. The first wait is counted separately.
TEST(Telemetry, CountsWaitsAndTheTimeBetween) {
  telemetry t({.rank = 3, .slots = 2});
  t.wait(0, 1'000, 5'000, 0);
  t.wait(1, 6'000, 6'010, 2);
  t.wait(2, 10'000, 15'000, 0);
  const telemetry_report report = t.report();
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.batches, 3);
  EXPECT_EQ(report.first_wait_ns, 4'000);
  EXPECT_EQ(report.elapsed_ns, 10'000);
  EXPECT_EQ(report.waits.count, 2);
  EXPECT_EQ(report.waits.total_ns, 5'010);
  EXPECT_EQ(report.waits.max_ns, 5'000);
  EXPECT_DOUBLE_EQ(report.data_wait_share(), 0.501);
  EXPECT_EQ(report.occupancy, (std::vector<std::int64_t>{2, 0, 1}));
  EXPECT_DOUBLE_EQ(report.mean_occupancy(), 2.0 / 3);
  EXPECT_EQ(stalls_of(report), 1);
}

TEST(Telemetry, CountsStagesAndBytes) {
  telemetry t({.usage = +[]() noexcept { return thread_usage{}; }});
  t.producer().slot_wait(0, 0, 10);
  t.producer().stage(loader_stage::plan, 0, 10, 30);
  t.producer().read(0, 30, 100, 65'536);
  t.producer().bytes_read(4);
  t.producer().stage(loader_stage::copy, 0, 100, 101);
  const telemetry_report report = t.report();
  const auto total = [&](loader_stage s) {
    return report.stages[static_cast<std::size_t>(s)].total_ns;
  };
  EXPECT_EQ(total(loader_stage::plan), 20);
  EXPECT_EQ(total(loader_stage::storage), 0);
  EXPECT_EQ(total(loader_stage::gather), 70);
  EXPECT_EQ(total(loader_stage::copy), 1);
  EXPECT_EQ(report.slot_waits.total_ns, 10);
  EXPECT_EQ(report.bytes, 65'540);
}

// Several threads make batches at the same time, and each thread has its own counters. The report
// must contain their sums.
TEST(Telemetry, AddsUpWhatProducersTell) {
  telemetry t({.slots = 8, .producers = 3, .trace_events = 1 << 14});
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&t, i] {
        producer_log& log = t.producer(static_cast<std::size_t>(i));
        for (std::int64_t m = i; m < 900; m += 3) {
          log.slot_wait(m, 10, 20);
          log.stage(loader_stage::gather, m, 20, 20 + m);
          log.bytes_read(7);
        }
      });
    }
  }
  const telemetry_report report = t.report();
  const duration_counts& gathers = report.stages[static_cast<std::size_t>(loader_stage::gather)];
  EXPECT_EQ(gathers.count, 900);
  EXPECT_EQ(gathers.total_ns, 899 * 900 / 2);
  EXPECT_EQ(gathers.max_ns, 899);
  EXPECT_EQ(report.slot_waits.count, 900);
  EXPECT_EQ(report.bytes, 900 * 7);
  for (const trace_event& each : t.trace()) EXPECT_EQ(each.detail, each.micro_batch % 3);
}

TEST(Telemetry, ComparesTheMixture) {
  telemetry t({.mixture = {{"web", 3}, {"code", 1}}});
  t.served(0, 80);
  t.served(1, 20);
  EXPECT_DOUBLE_EQ(t.report().mixture_error(), 0.05);
  t.aim(std::vector<double>{0, 1});
  t.served(1, 100);
  EXPECT_DOUBLE_EQ(t.report().mixture_error(), 0.025);
}

TEST(Telemetry, TracesWhatItIsTold) {
  telemetry t({.slots = 2, .trace_events = 64});
  t.producer().slot_wait(0, 5, 10);
  t.producer().stage(loader_stage::gather, 0, 10, 20);
  t.wait(0, 4, 21, 0);
  t.producer().slot_wait(1, 20, 25);
  t.producer().stage(loader_stage::copy, 1, 25, 90);
  t.wait(1, 30, 91, 0);
  const auto events = t.trace();
  ASSERT_EQ(events.size(), 8);
  EXPECT_EQ(events[0].kind, trace_kind::slot_wait);
  EXPECT_EQ(events[1].kind, trace_kind::gather);
  EXPECT_EQ(events[2].kind, trace_kind::wait);
  EXPECT_EQ(events[2].detail, 0);  // the first wait does not count as a stall
  EXPECT_EQ(events[3].kind, trace_kind::ready);
  EXPECT_EQ(events[6].kind, trace_kind::wait);
  EXPECT_EQ(events[6].detail, static_cast<int>(stall_cause::copy) + 1);
  EXPECT_EQ(events[6].begin_ns, 30);
  EXPECT_EQ(events[6].end_ns, 91);
}

// Injects one cause at a time into a loader that does not stall otherwise: a batch is made in about
// 60 us, and the caller works for 200 to 2,000 us per batch. A delay is either short and injected
// for every batch, or long and injected rarely.
struct injection {
  stall_cause cause;
  bool always;
};

class StallCause : public testing::TestWithParam<injection> {};

TEST_P(StallCause, IsNamed) {
  const auto [cause, always] = GetParam();
  std::mt19937_64 random(test::seed(1));
  std::int64_t stalls = 0;
  for (int round = 0; round < 200; ++round) {
    const auto between = [&](std::int64_t least, std::int64_t most) {
      return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least));
    };
    const std::int64_t slots = between(3, 12);
    const std::int64_t compute = between(200 * us, 2 * ms);
    const std::int64_t late =
        always ? compute + between(compute / 10, 2 * compute) : (slots + between(1, 10)) * compute;
    const std::int64_t every = always ? 1 : between(2, 50);
    const bool hold = cause == stall_cause::consumer;
    const std::int64_t held = hold ? between(2, slots) : 1;
    const std::int64_t batches = 400;
    std::vector<simulated_times> times(static_cast<std::size_t>(batches));
    for (std::int64_t m = 0; m < batches; ++m) {
      simulated_times& each = times[static_cast<std::size_t>(m)];
      each = {between(1, 5) * us, random() % 4 == 0 ? between(1, 20) * us : 0, between(10, 30) * us,
              between(5, 15) * us, compute};
      // The caller first collects batches, and then works on all of them. During this work, it
      // requests no batch.
      if (hold) each.compute = m % held == held - 1 ? held * compute : 0;
      if ((m + 1) % every != 0) continue;
      if (cause == stall_cause::storage) each.storage += late;
      if (cause == stall_cause::gather) each.gather += late;
      if (cause == stall_cause::copy) each.copy += late;
    }
    telemetry t({.slots = slots});
    simulate_pipeline(t, batches, slots, held, random() % 2 == 0,
                      [&](std::int64_t m) { return times[static_cast<std::size_t>(m)]; });
    const telemetry_report report = t.report();
    stalls += stalls_of(report);
    EXPECT_GE(static_cast<double>(stalls_by(report, cause).stalls),
              0.95 * static_cast<double>(stalls_of(report)))
        << "round " << round << ": " << slots << " slots, " << held << " held, one in " << every
        << ", of " << stalls_of(report) << " stalls";
  }
  EXPECT_GT(stalls, 1000);
}

std::string title(stall_cause cause) {
  std::string name = name_of(cause);
  name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

INSTANTIATE_TEST_SUITE_P(
    Each, StallCause,
    testing::Values(injection{stall_cause::storage, true}, injection{stall_cause::storage, false},
                    injection{stall_cause::gather, true}, injection{stall_cause::gather, false},
                    injection{stall_cause::copy, true}, injection{stall_cause::copy, false},
                    injection{stall_cause::consumer, true}),
    [](const testing::TestParamInfo<injection>& each) {
      return title(each.param.cause) + (each.param.always ? "Always" : "NowAndThen");
    });

// If no cause is injected, no stall may be reported.
TEST(Telemetry, NamesNothingWhereNothingStalls) {
  telemetry t({.slots = 4});
  simulate_pipeline(t, 1000, 4, 1, false, [](std::int64_t) {
    return simulated_times{2 * us, 0, 30 * us, 10 * us, 200 * us};
  });
  EXPECT_EQ(stalls_of(t.report()), 0);
  EXPECT_EQ(t.report().data_wait_share(), 0);
}

// The tests below use real threads, a ring, the real clock and the kernel's counters.
struct planned_slot {
  std::int64_t micro_batch = 0;
};

void spin(std::chrono::microseconds time) {
  const std::int64_t end = now_ns() + time.count() * us;
  while (now_ns() < end) {
  }
}

class RealStallCause : public testing::TestWithParam<stall_cause> {
 protected:
  static constexpr std::int64_t batches = 120;
  static constexpr std::int64_t slots = 4;

  /// Serves all batches while one side is slow. Each side waits until the other has reached a known
  /// point, so the stalls do not depend on the speed of the threads. However, a thread may lose the
  /// processor for milliseconds in a part that is not meant to be slow. That changes the cause of a
  /// stall.
  static telemetry_report serve(stall_cause cause);
};

telemetry_report RealStallCause::serve(stall_cause cause) {
  using namespace std::chrono_literals;
  const bool held_by_consumer = cause == stall_cause::consumer;
  // The consumer takes three slots and releases them together. So the second batch after that must
  // wait for a slot.
  const auto waits_for_slot = [](std::int64_t m) { return m >= slots && m % (slots - 1) == 1; };
  telemetry t({.slots = slots, .trace_events = 256});
  slot_ring<planned_slot> ring(slots, [](std::size_t) { return planned_slot{}; });
  std::atomic<std::int64_t> claimed = -1;  // index of the batch for which the producer wants a slot
  std::atomic<std::int64_t> published = 0;
  std::atomic<std::int64_t> asked_for = -1;  // index of the batch for which the consumer waits
  std::atomic<bool> done = false;
  // Spin, because sleeping would look like waiting for storage.
  const auto reach = [](const std::atomic<std::int64_t>& counter, std::int64_t value) {
    while (counter.load() < value) {
    }
  };

  std::jthread producer([&] {
    for (std::int64_t m = 0; m < batches; ++m) {
      const std::int64_t asked = now_ns();
      claimed = m;
      const slot_ring<planned_slot>::claim claim = ring.acquire_free();
      const std::int64_t taken = now_ns();
      t.producer().slot_wait(m, asked, taken);
      claim.slot->micro_batch = m;
      if (held_by_consumer && waits_for_slot(m)) reach(asked_for, m);
      const std::int64_t begin = now_ns();
      if (cause == stall_cause::storage || cause == stall_cause::gather) reach(asked_for, m);
      if (cause == stall_cause::storage) std::this_thread::sleep_for(4ms);
      if (cause == stall_cause::gather) spin(4ms);
      const std::int64_t read = now_ns();
      t.producer().read(m, begin, read, 65'536);
      if (cause == stall_cause::copy) {
        reach(asked_for, m);
        std::this_thread::sleep_for(4ms);
      }
      t.producer().stage(loader_stage::copy, m, read, now_ns());
      ring.publish(claim);
      ++published;
    }
    ring.finish(batches, nullptr);
  });
  // Another thread requests reports continuously, as a metrics endpoint may do.
  std::jthread watcher([&] {
    while (!done.load()) {
      EXPECT_LE(t.report().batches, batches);
      EXPECT_LE(t.trace().size(), 256);
      std::this_thread::sleep_for(1ms);
    }
  });

  std::vector<planned_slot*> held;
  for (std::int64_t m = 0; m < batches; ++m) {
    if (held_by_consumer && !waits_for_slot(m)) reach(published, m + 1);
    const std::int64_t asked = now_ns();
    const std::int64_t ready = published.load() - m;
    asked_for = m;
    planned_slot* s = ring.take();
    t.wait(m, asked, now_ns(), ready);
    EXPECT_EQ(s->micro_batch, m);
    held.push_back(s);
    if (held_by_consumer && held.size() < slots - 1) continue;
    if (held_by_consumer) reach(claimed, std::min(m + 2, batches - 1));
    std::this_thread::sleep_for(held_by_consumer ? 8ms : 1ms);
    for (planned_slot* each : held) ring.release(each);
    held.clear();
  }
  done = true;
  return t.report();
}

// The injected cause must be reported. A busy machine may take the processor away at the wrong
// time, so one successful attempt is enough. Under a sanitizer, all parts are slow. There, the
// threads run only once, so that the sanitizer can find faults.
TEST_P(RealStallCause, IsNamed) {
  const stall_cause cause = GetParam();
  const std::int64_t least = cause == stall_cause::consumer ? 30 : 100;
  std::string said;
  for (int attempt = 0; attempt < 20; ++attempt) {
    const telemetry_report report = serve(cause);
    EXPECT_EQ(report.batches, batches);
    if (test::under_address_sanitizer || test::under_thread_sanitizer) return;
    const std::int64_t named = stalls_by(report, cause).stalls;
    const std::int64_t all = stalls_of(report);
    if (all >= least && static_cast<double>(named) >= 0.95 * static_cast<double>(all)) return;
    said += std::to_string(named) + " of " + std::to_string(all) + " stalls\n";
  }
  FAIL() << said;
}

INSTANTIATE_TEST_SUITE_P(Each, RealStallCause,
                         testing::Values(stall_cause::storage, stall_cause::gather,
                                         stall_cause::copy, stall_cause::consumer),
                         [](const testing::TestParamInfo<stall_cause>& each) {
                           return title(each.param);
                         });

}  // namespace
}  // namespace millrace::loader
