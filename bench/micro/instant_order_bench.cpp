// SPDX-License-Identifier: Apache-2.0
//
// Measures the time of four operations of the order `instant`. A window is the token range of a
// sample.
// - looking up the window of a position, and the position of a window
// - the same two lookups in a blend of up to 200 sources
// - looking up the documents of a window
// - opening a large dataset and looking up its first sample
//
//   instant_order_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// Creates a sparse dataset in /dev/shm, or in the folder $MILLRACE_BENCH_FOLDER. The dataset has
// 10^7 documents (a 200 MB index) or $MILLRACE_BENCH_DOCUMENTS documents. A document has 700 tokens
// on average. If $MILLRACE_BENCH_PREFIX is set, the program uses the existing dataset with that
// prefix instead. Compare CPU times. For a dataset of 10^9 documents, use end_to_end/first_sample,
// which measures the first sample in new processes.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/instant_order.hpp>

#include "bench/support/process_figures.hpp"
#include "bench/support/sparse_dataset.hpp"
#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

constexpr std::int64_t seq_len = 4096;

/// Returns random numbers below `limit`, drawn before timing starts.
std::vector<std::int64_t> random_below(std::int64_t limit) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> out(1 << 14);
  for (auto& i : out) i = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  return out;
}

// The argument is the number of windows. The worst case is a number just above a power of two.
void position_to_window(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  const window_order order("web", count * seq_len + 77, seq_len, 1234);
  const auto positions = random_below(20 * count);
  std::size_t i = 0;
  std::int64_t sum = 0;
  for (auto _ : state) {
    // Make each look-up depend on the result of the previous one, so that the CPU cannot overlap
    // them.
    sum += order.at(positions[i++ & 0x3fff] + (sum & 1)).window;
  }
  benchmark::DoNotOptimize(sum);
}
void window_to_position(benchmark::State& state) {
  const std::int64_t count = state.range(0);
  const window_order order("web", count * seq_len + 77, seq_len, 1234);
  const auto windows = random_below(count - 1);
  std::size_t i = 0;
  std::int64_t sum = 0;
  for (auto _ : state) {
    sum += order.sample_of(static_cast<std::int64_t>(i & 15), windows[i & 0x3fff] + (sum & 1));
    ++i;
  }
  benchmark::DoNotOptimize(sum);
}
void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(1000)->Arg(1 << 20)->Arg((1 << 20) + 1)->Arg(244'140'624)->Arg((1LL << 38) + 1);
}
BENCHMARK(position_to_window)->Apply(sizes);
BENCHMARK(window_to_position)->Apply(sizes);

// @param smallest  the weight of the first source is 1 / smallest; every other weight is 1
instant_order blend_of(std::int64_t sources, std::int64_t smallest) {
  std::vector<instant_source> all;
  schedule_segment segment;
  for (std::int64_t i = 0; i < sources; ++i) {
    all.push_back({"source" + std::to_string(i), "", {}, 1'000'000'000 + i});
    segment.sources.push_back({i, i == 0 ? 1. / static_cast<double>(smallest) : 1.});
  }
  return {all,
          {.seed = 1234,
           .seq_len = seq_len,
           .segments = {segment},
           .first_position_of = [](std::int64_t step) { return step * 512; },
           .train_samples = std::nullopt,
           .most_open = 512}};
}

void blend_forward(benchmark::State& state) {
  const instant_order order = blend_of(state.range(0), state.range(1));
  const auto positions = random_below(std::int64_t{1} << 32);
  std::size_t i = 0;
  std::int64_t sum = 0;
  for (auto _ : state) sum += order.at(positions[i++ & 0x3fff] + (sum & 1)).place.window;
  benchmark::DoNotOptimize(sum);
}
void blend_back(benchmark::State& state) {
  const instant_order order = blend_of(state.range(0), state.range(1));
  const auto windows = random_below(200'000);
  std::size_t i = 0;
  std::int64_t sum = 0;
  for (auto _ : state) {
    const std::int64_t source = static_cast<std::int64_t>(i) % order.source_count();
    sum += *order.position_of(source, static_cast<std::int64_t>(i & 15),
                              windows[i & 0x3fff] + (sum & 1));
    ++i;
  }
  benchmark::DoNotOptimize(sum);
}
void make_blend(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(blend_of(state.range(0), state.range(1)).end());
}
BENCHMARK(blend_forward)->Args({1, 1})->Args({200, 1})->Args({200, 5000})->ArgNames({"", "1/"});
BENCHMARK(blend_back)->Args({1, 1})->Args({200, 1})->Args({200, 5000})->ArgNames({"", "1/"});
BENCHMARK(make_blend)->Args({200, 1})->Args({200, 5000})->Unit(benchmark::kMillisecond);

std::int64_t document_count() {
  const char* given = std::getenv("MILLRACE_BENCH_DOCUMENTS");
  return given != nullptr ? std::strtoll(given, nullptr, 10) : 10'000'000;
}

/// Returns the prefix of a dataset with a complete index. Unless $MILLRACE_BENCH_PREFIX is set, its
/// `.bin` is a sparse file without data.
const std::filesystem::path& large_dataset() {
  const char* folder = std::getenv("MILLRACE_BENCH_FOLDER");
  static const test::temp_folder home(folder != nullptr ? std::filesystem::path(folder)
                                                        : test::quick_folder());
  static const std::filesystem::path prefix = []() -> std::filesystem::path {
    if (const char* given = std::getenv("MILLRACE_BENCH_PREFIX")) return given;
    bench::write_sparse_dataset(home / "large", document_count());
    return home / "large";
  }();
  return prefix;
}

void window_to_documents(benchmark::State& state) {
  const document_search search(index_columns(
      large_dataset(), state.range(0) != 0 ? index_access::pread : index_access::map_if_possible));
  const window_order order("large", search.columns().token_count(), seq_len, 1);
  const auto positions = random_below(order.windows_per_epoch());
  std::vector<piece> pieces;
  for (const std::int64_t p : positions) {  // not measured: warms the caches
    search.pieces(order.at(p).first_token, seq_len + 1, pieces);
    pieces.clear();
  }
  std::size_t i = 0;
  for (auto _ : state) {
    pieces.clear();
    search.pieces(order.at(positions[i++ & 0x3fff]).first_token, seq_len + 1, pieces);
    benchmark::DoNotOptimize(pieces.data());
  }
}
BENCHMARK(window_to_documents)->ArgName("pread")->Arg(0)->Arg(1);

// Measures the time that it takes to open the dataset and to look up the pieces of one sample.
void first_sample(benchmark::State& state) {
  const auto& prefix = large_dataset();
  std::int64_t position = 0;
  for (auto _ : state) {
    const instant_order order({{prefix, "", {}, {}}},
                              {.seed = 1234,
                               .seq_len = seq_len,
                               .segments = {{0, {{0, 1}}}},
                               .first_position_of = [](std::int64_t step) { return step * 512; },
                               .train_samples = std::nullopt,
                               .most_open = 512});
    std::vector<piece> pieces;
    order.pieces(order.at(position++ % 64), pieces);
    benchmark::DoNotOptimize(pieces.data());
  }
  state.counters["RssAnon_kB"] = static_cast<double>(bench::status_of("RssAnon"));
}
BENCHMARK(first_sample)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace millrace::dataset
