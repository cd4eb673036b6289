// SPDX-License-Identifier: Apache-2.0
//
// What a batch costs: batch_loader over a warm dataset, and beside it the roof, a plain memcpy of
// as many bytes from the same file into as many buffers.
//
//   loader_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// bytes_per_second counts what a caller gets: tokens and labels as int64, 16 bytes a token. Time is
// the caller's, CPU is that of both threads: compare CPU where other programs run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/loader/batch_loader.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::loader {
namespace {

constexpr std::size_t dataset_bytes = std::size_t{64} << 20;

/// 64 MiB of random ids below 32,000, made once and read once, so that it is warm.
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

loader_options options_of(const benchmark::State& state) {
  return {.batch_size = state.range(0), .seq_len = state.range(1)};
}

void report(benchmark::State& state, const loader_options& options) {
  const auto tokens = state.iterations() * options.batch_size * options.seq_len;
  state.SetBytesProcessed(tokens * 16);
  using benchmark::Counter;
  state.counters["batches"] = Counter(static_cast<double>(state.iterations()), Counter::kIsRate);
  state.counters["per_token"] =
      Counter(static_cast<double>(tokens), Counter::kIsRate | Counter::kInvert);
}

template <class T>
void loader_next(benchmark::State& state) {
  const auto& data = warm_dataset<T>();
  const loader_options options = options_of(state);
  std::optional<batch_loader> loader(std::in_place, data, options);
  for (auto _ : state) {
    auto batch = loader->next();
    if (!batch) {  // one batch in hundreds: once round the dataset
      loader.emplace(data, options);
      batch = loader->next();
    }
    benchmark::DoNotOptimize(batch->labels().data());
  }
  report(state, options);
}

template <class T>
void memcpy_roof(benchmark::State& state) {
  const auto bytes = warm_dataset<T>().stream().bytes();
  const loader_options options = options_of(state);
  const auto batch_bytes = static_cast<std::size_t>(options.batch_size * options.seq_len) * 16;
  std::vector<std::vector<std::byte>> slots(static_cast<std::size_t>(options.look_ahead) + 2,
                                            std::vector<std::byte>(batch_bytes));
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
  report(state, options);
}

// [batch_size, seq_len]
void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 4096})
      ->Args({4, 1024})
      ->ArgNames({"batch", "seq"})
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}

BENCHMARK(loader_next<std::uint16_t>)->Apply(shapes);
BENCHMARK(loader_next<std::int32_t>)->Apply(shapes);
BENCHMARK(memcpy_roof<std::uint16_t>)->Apply(shapes);
BENCHMARK(memcpy_roof<std::int32_t>)->Apply(shapes);

}  // namespace
}  // namespace millrace::loader
