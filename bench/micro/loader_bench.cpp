// SPDX-License-Identifier: Apache-2.0
//
// Measures the time that a batch_loader takes per batch. It serves a dataset that is in the page
// cache, in the order `instant`. The upper bound of the speed (the "roof") is the speed of one
// thread that copies the same windows in file order into the same number of buffers.
//
//   loader_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// A `text` batch contains only the ids in the dtype of the source, such as 2 bytes per uint16
// token. An `int64` batch also contains tokens and labels as int64.
//
// `threads` is the number of threads that fill batches. "Time" is the wall time of the caller.
// "CPU" is the CPU time of all threads of the process. On a busy machine, compare "CPU".
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/pipeline.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::loader {
namespace {

constexpr std::size_t dataset_bytes = std::size_t{64} << 20;

/// Returns a dataset of 64 MiB of random ids below 32,000. The function has read the dataset once,
/// so it is in the page cache.
template <class T>
const dataset::indexed_dataset& warm_dataset() {
  static const test::temp_folder folder;
  static const dataset::indexed_dataset data = [] {
    std::mt19937_64 random(1);
    std::vector<T> tokens(dataset_bytes / sizeof(T));
    for (T& token : tokens) token = static_cast<T>(random() % 32000);
    test::write_dataset<T>(folder / "data", {{std::move(tokens)}});
    return dataset::indexed_dataset(folder / "data");
  }();
  const auto bytes = data.stream().bytes();
  benchmark::DoNotOptimize(std::count(bytes.begin(), bytes.end(), std::byte{}));
  return data;
}

/// Returns a run without a limit on epochs, so that no benchmark reaches its end.
dataset::instant_run run_over(const dataset::indexed_dataset& data, std::int64_t seq_len) {
  dataset::instant_options options;
  options.seq_len = seq_len;
  options.segments.push_back({0, {{0, 1.0}}});
  options.first_position_of = [](std::int64_t step) { return step * 8; };
  return {{{data.prefix(), "", {}, {}}}, options};
}

void report(benchmark::State& state, std::int64_t bytes_a_token) {
  const auto tokens = state.iterations() * state.range(0) * state.range(1);
  state.SetBytesProcessed(tokens * bytes_a_token);
  using benchmark::Counter;
  state.counters["per_token"] =
      Counter(static_cast<double>(tokens), Counter::kIsRate | Counter::kInvert);
}

template <class T>
void serve(benchmark::State& state, const host_fields& fields, std::int64_t bytes_a_token) {
  const auto& data = warm_dataset<T>();
  loader_options options = {.batch_size = state.range(0), .fields = fields};
  options.threads = state.range(2);
  options.look_ahead = 4;
  batch_loader loader(run_over(data, state.range(1)), options);
  for (std::size_t i = 0; i < 2 * dataset_bytes / sizeof(T) /
                                  static_cast<std::size_t>(state.range(0) * state.range(1));
       ++i) {
    (void)loader.next();  // not measured: two epochs, which complete the one-time checks
  }
  for (auto _ : state) {
    const auto batch = loader.next();
    benchmark::DoNotOptimize(batch->bytes().data());
  }
  report(state, bytes_a_token);
}

template <class T>
void int64_next(benchmark::State& state) {
  serve<T>(state, {}, 16);
}

template <class T>
void text_next(benchmark::State& state) {
  serve<T>(state, no_host_fields, sizeof(T));
}

/// Copies the windows of an epoch in file order, into as many buffers as the ring has slots.
template <class T>
void text_roof(benchmark::State& state) {
  const auto bytes = warm_dataset<T>().stream().bytes();
  const auto row = static_cast<std::size_t>(state.range(1) + 1) * sizeof(T);
  const auto step = static_cast<std::size_t>(state.range(1)) * sizeof(T);
  const auto rows = static_cast<std::size_t>(state.range(0));
  std::vector<std::vector<std::byte>> slots(6, std::vector<std::byte>(rows * row));
  std::size_t at = 0;
  std::size_t slot = 0;
  for (auto _ : state) {
    for (std::size_t r = 0; r < rows; ++r) {
      std::memcpy(slots[slot].data() + r * row, bytes.data() + at, row);
      at += step;
      if (at > bytes.size() - row) at = 0;
    }
    benchmark::DoNotOptimize(slots[slot].data());
    benchmark::ClobberMemory();
    slot = (slot + 1) % slots.size();
  }
  report(state, sizeof(T));
}

/// For each batch, copies as many bytes of the file as the tokens and labels of the batch have.
/// Uses as many buffers as the ring has slots.
template <class T>
void int64_roof(benchmark::State& state) {
  const auto bytes = warm_dataset<T>().stream().bytes();
  const auto batch_bytes = static_cast<std::size_t>(state.range(0) * state.range(1)) * 16;
  std::vector<std::vector<std::byte>> slots(6, std::vector<std::byte>(batch_bytes));
  std::size_t at = 0;
  std::size_t slot = 0;
  for (auto _ : state) {
    std::memcpy(slots[slot].data(), bytes.data() + at, batch_bytes);
    benchmark::DoNotOptimize(slots[slot].data());
    benchmark::ClobberMemory();
    slot = (slot + 1) % slots.size();
    at += batch_bytes;
    if (at > bytes.size() - batch_bytes) at = 0;
  }
  report(state, 16);
}

/// Only stores as many bytes as the tokens and labels of a batch have, to as many buffers as the
/// ring has slots. Nothing that fills a batch is faster, whatever it reads.
void int64_stores(benchmark::State& state) {
  const auto batch_bytes = static_cast<std::size_t>(state.range(0) * state.range(1)) * 16;
  const auto slot_count = static_cast<std::size_t>(state.range(2));
  std::vector<std::vector<std::byte>> slots(slot_count, std::vector<std::byte>(batch_bytes));
  std::size_t slot = 0;
  for (auto _ : state) {
    std::memset(slots[slot].data(), static_cast<int>(slot), batch_bytes);
    benchmark::DoNotOptimize(slots[slot].data());
    benchmark::ClobberMemory();
    slot = (slot + 1) % slots.size();
  }
  report(state, 16);
}

/// Fills one batch, from the sampler to the slot, on the thread of the caller. As there is no ring
/// and no second thread, CPU time equals wall time.
template <class T>
void fill_one(benchmark::State& state) {
  const auto& data = warm_dataset<T>();
  loader_options options = {.batch_size = state.range(0), .fields = no_host_fields};
  if (state.range(2) == 2) options.fields = {};
  const dataset::instant_run run = run_over(data, state.range(1));
  detail::look_ahead ahead(run, dataset::sampler(run.end(), sampler_of(options)), 0, 8, false);
  const std::vector<dataset::run_source> sources = run.sources();
  const std::vector<data_file> files = detail::files_of(sources);
  const std::vector<formats::dtype> types = detail::types_of(sources);
  const slot_layout layout(options.batch_size, run.seq_len(), true, detail::width_of(types));
  // The ring of a loader always reuses the slot that was released last. So if the caller is faster
  // than the filling thread, the loader uses only two slots.
  constexpr std::size_t slot_count = 2;
  std::vector<detail::batch_slot> slots;
  const auto texts = plain_memory(slot_count, layout.capacity_bytes());
  const auto fields = detail::host_memory(options.fields, layout, slot_count);
  for (std::size_t i = 0; i < slot_count; ++i) {
    detail::place_host_fields(options.fields, fields[i], slots.emplace_back(layout, texts[i]));
  }
  telemetry meter;
  data_verifier verifier({{files[0], types[0]}}, options.verify);
  const detail::fill_options fill{
      options.fields, {options.field_rules}, options.prefetch_samples > 0};
  detail::fill_worker worker(fill, files, types, std::make_unique<mmap_reader>(files), &verifier,
                             meter.producer());
  detail::planned_batch batch;
  std::vector<file_range> ranges;
  std::int64_t ticket = 0;
  const auto one = [&] {
    ranges.clear();
    const std::int64_t begin_ns = now_ns();
    (void)ahead.next(batch, [&](std::int64_t) -> std::vector<file_range>& { return ranges; });
    worker.log().slot_wait(ticket, begin_ns, begin_ns);
    worker.fill(ticket, batch, ranges, begin_ns,
                slots[static_cast<std::size_t>(ticket) % slot_count]);
    ++ticket;
  };
  for (int i = 0; i < 4000; ++i) one();
  for (auto _ : state) one();
  report(state, options.fields.any() ? 16 : sizeof(T));
}

// Arguments: batch size, sequence length, number of threads.
void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 4096, 1})
      ->Args({8, 4096, 2})
      ->Args({4, 1024, 1})
      ->ArgNames({"batch", "seq", "threads"})
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}
void one_thread(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 4096, 1})->Args({4, 1024, 1})->ArgNames({"batch", "seq", "threads"});
}
// Arguments: batch size, sequence length, and 1 for only text or 2 for text with int64 tokens and
// labels.
void alone(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 4096, 1})->Args({8, 4096, 2})->ArgNames({"batch", "seq", "fields"});
}

BENCHMARK(fill_one<std::uint16_t>)->Apply(alone);
BENCHMARK(text_roof<std::uint16_t>)->Apply(one_thread);
BENCHMARK(int64_roof<std::uint16_t>)->Apply(one_thread);
BENCHMARK(int64_stores)
    ->Args({8, 4096, 2})
    ->Args({8, 4096, 6})
    ->ArgNames({"batch", "seq", "slots"});
BENCHMARK(text_next<std::uint16_t>)->Apply(shapes);
BENCHMARK(int64_next<std::uint16_t>)->Apply(shapes);
BENCHMARK(fill_one<std::int32_t>)->Apply(alone);
BENCHMARK(int64_next<std::int32_t>)->Apply(shapes);

}  // namespace
}  // namespace millrace::loader
