// SPDX-License-Identifier: Apache-2.0
//
// Measures three implementations of greedy blending with the same log-normal weights: Megatron's
// plain loop over all datasets, millrace's loop over blocks of samples, and millrace's loop without
// AVX-512. Checks that all three give the same blend.
//
//   blend_bench --benchmark_filter=/200/1000000
//   blend_bench --benchmark_filter=/200/100000000
//
// Times are the CPU time of one thread. Compare `per_sample`.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/megatron_run.hpp>

#include "support/plain_blend.hpp"

namespace millrace::dataset {
namespace {

std::vector<double> weights_of(std::int64_t datasets) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0.0, 1.5);
  std::vector<double> weights(static_cast<std::size_t>(datasets));
  for (double& weight : weights) weight = std::exp(normal(random));
  return normalize(weights);
}

/// Ends the program if two implementations gave different blends for the same numbers of datasets
/// and samples.
void check(const benchmark::State& state, const test::blend_columns& columns) {
  static std::map<std::pair<std::int64_t, std::int64_t>, test::blend_columns> firsts;
  const auto [first, is_new] = firsts.try_emplace({state.range(0), state.range(1)}, columns);
  if (is_new || first->second == columns) return;
  std::cerr << "blend_bench: two ways wrote different blends\n";
  std::exit(1);
}

template <class Fill>
void run(benchmark::State& state, Fill fill) {
  const std::vector<double> weights = weights_of(state.range(0));
  test::blend_columns columns(state.range(1));  // touches all its pages before timing starts
  for (auto _ : state) fill(weights, columns.span());
  check(state, columns);
  using benchmark::Counter;
  state.counters["per_sample"] = Counter(static_cast<double>(state.iterations() * state.range(1)),
                                         Counter::kIsRate | Counter::kInvert);
}

void plain_loop(benchmark::State& state) {
  run(state, [](const std::vector<double>& weights, blend_index_span out) {
    test::fill_plain_blend(weights, {}, out, test::error_rounded_twice);
  });
}

void greedy_blend(benchmark::State& state) {
  run(state, [](const std::vector<double>& weights, blend_index_span out) {
    fill_greedy_blend(weights, out);
  });
}

void greedy_blend_plain_kernel(benchmark::State& state) {
  run(state, [](const std::vector<double>& weights, blend_index_span out) {
    detail::fill_blend_by(detail::greedy_kernel::plain, weights, {}, out, blend_rounding::twice);
  });
}

// Arguments: number of datasets, number of samples.
void shapes(benchmark::internal::Benchmark* bench) {
  for (const std::int64_t datasets : {8, 50, 200, 2000}) bench->Args({datasets, 1000000});
}
void long_run(benchmark::internal::Benchmark* bench) {
  bench->Args({200, 100000000})->Iterations(1)->Unit(benchmark::kMillisecond);
}

BENCHMARK(plain_loop)->Apply(shapes);
BENCHMARK(plain_loop)->Apply(long_run);
BENCHMARK(greedy_blend)->Apply(shapes);
BENCHMARK(greedy_blend)->Apply(long_run);
BENCHMARK(greedy_blend_plain_kernel)->Apply(shapes);
BENCHMARK(greedy_blend_plain_kernel)->Apply(long_run);

}  // namespace
}  // namespace millrace::dataset
