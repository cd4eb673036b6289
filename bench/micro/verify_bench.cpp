// SPDX-License-Identifier: Apache-2.0
//
// Measures how much CPU time verification takes. `data_verifier` checks windows (samples) of 4,096
// tokens in random order, each window once per epoch. The dataset has a `.sum` file and is in the
// page cache.
//
//   verify_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
//
// `per_token` is the CPU time per token. There is only one thread. The lower bound of the time for
// a first epoch (its "roof") is the time that the CRC-32C of the same bytes in memory takes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/loader/detail/verify/data_verifier.hpp>
#include <millrace/loader/detail/verify/token_range.hpp>

#include "support/summed_dataset.hpp"

namespace millrace::loader {
namespace {

constexpr std::size_t dataset_bytes = std::size_t{128} << 20;
constexpr std::int64_t seq_len = 4096;

template <class T>
const test::summed_dataset<T>& warm_dataset() {
  static const test::summed_dataset<T> data(dataset_bytes / sizeof(T), 31999);
  return data;
}

/// Returns all windows in random order. Sets `bytes` to the bytes that a reader would gather for
/// these windows.
template <class T>
std::vector<read_request> windows(std::vector<std::byte>& bytes) {
  const auto& tokens = warm_dataset<T>().tokens();
  const auto all = std::as_bytes(std::span(tokens));
  bytes.assign(all.begin(), all.end());
  constexpr std::size_t window = seq_len * sizeof(T);
  std::vector<read_request> requests;
  for (std::size_t at = 0; at + window <= bytes.size(); at += window) {
    requests.push_back({{0, at, window}, bytes.data() + at});
  }
  std::ranges::shuffle(requests, std::mt19937_64(1));
  return requests;
}

void count_tokens(benchmark::State& state, std::size_t windows) {
  const auto tokens = state.iterations() * static_cast<std::int64_t>(windows) * seq_len;
  state.counters["per_token"] = benchmark::Counter(
      static_cast<double>(tokens), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

verify_options options_of(const benchmark::State& state) {
  return {.vocab_size = state.range(0), .scrub_bytes_per_second = 0};
}

/// First argument: vocab_size, or 0 to check only checksums. Second argument: 1 if a reader has
/// mapped the file, otherwise 0.
template <class T>
void first_epoch(benchmark::State& state) {
  std::vector<std::byte> bytes;
  const auto requests = windows<T>(bytes);
  const auto table = open_files::of_process();
  const auto file = table->attach(warm_dataset<T>().file().file);
  if (state.range(1) != 0) {
    const auto map = table->map_at(*file, 0).got;
    const std::byte* begin = map->bytes.data();
    benchmark::DoNotOptimize(std::count(begin, begin + map->bytes.bytes(), std::byte{}));
  }
  for (auto _ : state) {
    data_verifier verifier({warm_dataset<T>().file()}, options_of(state));
    std::int64_t sample = 0;
    for (const read_request& request : requests) verifier.check({&request, 1}, sample++);
    if (verifier.report().touched != verifier.report().blocks) state.SkipWithError("not warm");
  }
  count_tokens(state, requests.size());
}

template <class T>
void later_epochs(benchmark::State& state) {
  std::vector<std::byte> bytes;
  const auto requests = windows<T>(bytes);
  data_verifier verifier({warm_dataset<T>().file()}, options_of(state));
  for (const read_request& request : requests) verifier.check({&request, 1}, 0);
  for (auto _ : state) {
    for (const read_request& request : requests) verifier.check({&request, 1}, 0);
  }
  count_tokens(state, requests.size());
}

template <class T>
void crc_roof(benchmark::State& state) {
  const auto bytes = std::as_bytes(std::span(warm_dataset<T>().tokens()));
  for (auto _ : state) {
    for (std::size_t at = 0; at < bytes.size(); at += formats::sum_block_bytes) {
      const std::size_t size = std::min<std::size_t>(formats::sum_block_bytes, bytes.size() - at);
      benchmark::DoNotOptimize(formats::crc32c(bytes.subspan(at, size)));
    }
  }
  count_tokens(state, bytes.size() / sizeof(T) / seq_len);
}

/// Checks the ids of a window that is in the L1 or L2 cache of the CPU. This work is needed for
/// each sample whose block has not been checked yet.
template <class T>
void token_range(benchmark::State& state) {
  const auto tokens = std::span(warm_dataset<T>().tokens()).first(seq_len);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        find_outside(std::as_bytes(tokens), formats::dtype_of<T>(), state.range(0)));
  }
  count_tokens(state, 1);
}

BENCHMARK_TEMPLATE(first_epoch, std::uint16_t)->ArgsProduct({{0, 32000}, {0, 1}});
BENCHMARK_TEMPLATE(first_epoch, std::int32_t)->ArgsProduct({{0, 32000}, {0, 1}});
BENCHMARK_TEMPLATE(crc_roof, std::uint16_t);
BENCHMARK_TEMPLATE(crc_roof, std::int32_t);
BENCHMARK_TEMPLATE(later_epochs, std::uint16_t)->Arg(32000);
BENCHMARK_TEMPLATE(later_epochs, std::int32_t)->Arg(32000);
BENCHMARK_TEMPLATE(token_range, std::uint16_t)->Arg(32000);
BENCHMARK_TEMPLATE(token_range, std::int32_t)->Arg(32000);

}  // namespace
}  // namespace millrace::loader
