// SPDX-License-Identifier: Apache-2.0
//
// Measures how much time telemetry takes per micro-batch: all events of the producer and of the
// caller, with and without clock readings, and with and without a trace. The goal is less than 150
// ns. This is 1 % of the time of a fast micro-batch (15 us).
//
//   telemetry_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
#include <sys/resource.h>

#include <cstdint>

#include <benchmark/benchmark.h>

#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>

namespace millrace::loader {
namespace {

constexpr std::int64_t rows = 8;

/// Makes the telemetry calls that a loader makes for one micro-batch. Reads the clock only if
/// `Clock` is true.
template <bool Clock>
void tell(benchmark::State& state) {
  telemetry t({.slots = 4,
               .trace_events = static_cast<std::size_t>(state.range(0)),
               .mixture = {{"web", 3}, {"code", 1}}});
  std::int64_t fake = 0;
  const auto now = [&] { return Clock ? now_ns() : fake += 3'000; };
  std::int64_t m = 0;
  std::int64_t published = now();
  for (auto _ : state) {
    const std::int64_t begin = now();
    t.producer().slot_wait(m, published, begin);
    const std::int64_t planned = now();
    t.producer().stage(loader_stage::plan, m, begin, planned);
    const std::int64_t read = now();
    t.producer().read(m, planned, read, 65'536);
    published = now();
    t.producer().stage(loader_stage::copy, m, read, published);

    const std::int64_t asked = now();
    t.wait(m, asked, now(), 3);
    t.served(0, rows - 2);
    t.served(1, 2);
    ++m;
  }
  benchmark::DoNotOptimize(t.report().batches);
}

void clock_reading(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now_ns());
}

void report(benchmark::State& state) {
  const telemetry t({.slots = 4});
  for (auto _ : state) benchmark::DoNotOptimize(t.report().batches);
}

BENCHMARK(tell<true>)->Arg(0)->Arg(65'536)->ArgName("trace");
BENCHMARK(tell<false>)->Arg(0)->Arg(65'536)->ArgName("trace");
BENCHMARK(clock_reading);
BENCHMARK(report);

}  // namespace
}  // namespace millrace::loader
