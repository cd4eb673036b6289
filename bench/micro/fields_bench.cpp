// SPDX-License-Identifier: Apache-2.0
//
// Measures the time to fill the fields of a sample (tokens, labels, loss mask and positions) from a
// text of 4,096 tokens, in ns per token. `fill_roof` fills the same number of bytes with memset, so
// its time is a lower bound.
//
//   fields_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
//
// First argument: 1 if the three options that depend on token values are on, otherwise 0. Second
// argument: the average number of tokens per eod token.
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/detail/sample/fields.hpp>

namespace millrace::dataset {
namespace {

constexpr std::int64_t seq_len = 4096;

void report(benchmark::State& state) {
  state.counters["per_token"] =
      benchmark::Counter(static_cast<double>(state.iterations() * seq_len),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

template <class Token, class Id>
void fields_of_text(benchmark::State& state) {
  const bool on = state.range(0) != 0;
  std::mt19937_64 random(1);
  std::vector<Token> text(seq_len + 1);
  for (Token& t : text) {
    t = static_cast<Token>(
        random() % static_cast<std::uint64_t>(state.range(1)) == 0 ? 3 : 4 + random() % 32000);
  }
  std::vector<Id> tokens(seq_len), labels(seq_len), positions(seq_len);
  std::vector<float> loss(seq_len);
  const field_options options{
      .reset_position_ids = on, .reset_attention_mask = on, .eod_mask_loss = on, .eod = 3};
  for (auto _ : state) {
    fill_fields<Token, Id>(text, seq_len + 1, seq_len, options, {tokens, labels, loss, positions});
    benchmark::ClobberMemory();
  }
  report(state);
}

template <class Id>
void fill_roof(benchmark::State& state) {
  std::vector<char> out(seq_len * (3 * sizeof(Id) + sizeof(float)));
  int value = 0;
  for (auto _ : state) {
    std::memset(out.data(), ++value, out.size());
    benchmark::ClobberMemory();
  }
  report(state);
}

BENCHMARK(fields_of_text<std::uint16_t, std::int64_t>)
    ->Args({0, 500})
    ->Args({1, 500})
    ->Args({1, 50});
BENCHMARK(fields_of_text<std::int32_t, std::int64_t>)->Args({0, 500})->Args({1, 500});
BENCHMARK(fields_of_text<std::uint16_t, std::int32_t>)->Args({0, 500})->Args({1, 500});
BENCHMARK(fill_roof<std::int64_t>);
BENCHMARK(fill_roof<std::int32_t>);

}  // namespace
}  // namespace millrace::dataset
