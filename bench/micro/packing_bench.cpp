// SPDX-License-Identifier: Apache-2.0
//
// Packs 100 million documents into rows of 4,096 tokens or 32,768 tokens. Measures the time in
// seconds and the padding of the rows. The lengths of the documents are synthetic: log-normal, with
// a median of 400 tokens, a mean of about 820 and a maximum of 2^20.
//
//   packing_bench --benchmark_filter=lengths     best fit in blocks, and plain best fit
//   packing_bench --benchmark_filter=at_once     10 million conversations: the algorithms that pack
//                                                all documents at once, and best fit in blocks.
//                                                Also the memory per document, at its peak and
//                                                afterwards
//   packing_bench --benchmark_filter=random_row  looks up a random row and packs its block: first
//                                                with a memory-mapped index, then with reads, as
//                                                on a file system that does not allow mmap
//
// Everything runs on one thread. Best fit in blocks could use several threads, because each block
// of documents is packed separately; plain best fit could not.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/dataset/detail/packing/packed_rows.hpp>
#include <millrace/dataset/detail/packing/row_plan.hpp>
#include <millrace/formats/mmidx.hpp>

#include "bench/support/process_figures.hpp"
#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

std::vector<std::int32_t> synthetic_lengths(std::size_t documents) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<float> length(std::log(400.0F), 1.2F);
  std::vector<std::int32_t> lengths(documents);
  for (auto& l : lengths) l = static_cast<std::int32_t>(std::clamp(length(random), 1.0F, 0x1p20F));
  return lengths;
}

const std::vector<std::int32_t>& many_lengths() {
  static const auto lengths = synthetic_lengths(100'000'000);
  return lengths;
}

void report(benchmark::State& state, std::int64_t rows) {
  std::int64_t tokens = 0;
  for (const std::int32_t l : many_lengths()) tokens += l;
  const auto room = static_cast<double>(rows) * static_cast<double>(state.range(0));
  state.counters["padding_percent"] = 100 * (1 - static_cast<double>(tokens) / room);
  state.counters["rows"] = static_cast<double>(rows);
}

void lengths_in_blocks(benchmark::State& state) {
  const auto& lengths = many_lengths();
  std::int64_t rows = 0;
  for (auto _ : state) {
    rows = 0;
    best_fit packer({.seq_len = state.range(0)});
    std::vector<std::int64_t> block;
    for (std::size_t first = 0; first < lengths.size(); first += packing_block) {
      const std::size_t last = std::min<std::size_t>(lengths.size(), first + packing_block);
      block.assign(lengths.begin() + static_cast<std::ptrdiff_t>(first),
                   lengths.begin() + static_cast<std::ptrdiff_t>(last));
      rows += packer.pack(block);
    }
  }
  report(state, rows);
}

/// The best-fit algorithm of textbooks: puts each document, in stored order, into the fullest row
/// that has room for the document.
void lengths_plain_best_fit(benchmark::State& state) {
  const std::int64_t seq_len = state.range(0);
  std::int64_t rows = 0;
  for (auto _ : state) {
    rows = 0;
    std::map<std::int64_t, std::int64_t> open;  // free tokens in a row -> number of such rows
    for (std::int64_t length : many_lengths()) {
      rows += length / seq_len;
      length %= seq_len;
      if (length == 0) continue;
      const auto fit = open.lower_bound(length);
      std::int64_t room = seq_len;
      if (fit == open.end()) {
        ++rows;
      } else {
        room = fit->first;
        if (--fit->second == 0) open.erase(fit);
      }
      if (room > length) ++open[room - length];
    }
  }
  report(state, rows);
}

/// Lengths of conversations: log-normal with a median of 600 tokens, at most 4,096.
const std::vector<std::int32_t>& conversation_lengths() {
  static const auto lengths = [] {
    std::mt19937_64 random(3);
    std::lognormal_distribution<float> length(std::log(600.0F), 0.8F);
    std::vector<std::int32_t> all(10'000'000);
    for (auto& l : all) l = static_cast<std::int32_t>(std::clamp(length(random), 1.0F, 4096.0F));
    return all;
  }();
  return lengths;
}

/// @param algorithm  `best_fit` packs blocks, on the same lengths
void at_once(benchmark::State& state, packing_algorithm algorithm) {
  const auto& lengths = conversation_lengths();
  const auto count = static_cast<double>(lengths.size());
  const auto copy = [&](std::int64_t first, std::int64_t last, std::vector<std::int64_t>& out) {
    out.assign(lengths.begin() + first, lengths.begin() + last);
  };
  std::int64_t rows = 0;
  for (auto _ : state) {
    const long before = bench::own_kilobytes();
    std::ofstream("/proc/self/clear_refs") << 5;  // forgets the peak so far
    const long base = bench::status_of("VmRSS");
    if (algorithm == packing_algorithm::best_fit) {
      best_fit packer({.seq_len = state.range(0)});
      std::vector<std::int64_t> block;
      rows = 0;
      for (std::int64_t d = 0; d < std::ssize(lengths); d += packing_block) {
        copy(d, std::min<std::int64_t>(std::ssize(lengths), d + packing_block), block);
        rows += packer.pack(block);
      }
      state.counters["bytes_peak"] =
          1024 * static_cast<double>(bench::status_of("VmHWM") - base) / count;
      continue;
    }
    const row_plan plan({algorithm, state.range(0), 1}, std::ssize(lengths), copy);
    rows = plan.row_count();
    state.counters["bytes_peak"] =
        1024 * static_cast<double>(bench::status_of("VmHWM") - base) / count;
    state.counters["bytes_kept"] =
        1024 * static_cast<double>(bench::own_kilobytes() - before) / count;
  }
  std::int64_t tokens = 0;
  for (const std::int32_t l : lengths) tokens += l;
  const auto room = static_cast<double>(rows * state.range(0));
  state.counters["padding_percent"] = 100 * (1 - static_cast<double>(tokens) / room);
  state.counters["rows"] = static_cast<double>(rows);
}

void random_row(benchmark::State& state, index_access access) {
  const test::temp_folder folder;
  const auto lengths = synthetic_lengths(1'000'000);
  std::vector<std::int64_t> ends(lengths.size() + 1);
  std::uint64_t bytes = 0;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    ends[d + 1] = static_cast<std::int64_t>(d) + 1;
    bytes += 2 * static_cast<std::uint64_t>(lengths[d]);
  }
  test::write_bytes(folder / "data.idx",
                    formats::encode_mmidx(formats::dtype::uint16, lengths, ends));
  test::write_text(folder / "data.bin", "");
  std::filesystem::resize_file(folder / "data.bin", bytes);
  const index_columns columns(folder / "data", access);
  const packed_rows rows(columns, {.seq_len = state.range(0)});
  std::mt19937_64 random(2);
  std::uniform_int_distribution<std::int64_t> any_row(0, rows.row_count() - 1);
  std::vector<packed_part> parts;
  for (auto _ : state) {
    rows.row(any_row(random), parts);
    benchmark::DoNotOptimize(parts.data());
  }
}

BENCHMARK(lengths_in_blocks)->Arg(4096)->Arg(32768)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK(lengths_plain_best_fit)->Arg(4096)->Arg(32768)->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(at_once, best_fit_in_blocks, packing_algorithm::best_fit)
    ->Arg(4096)
    ->Arg(32768)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(at_once, first_fit_decreasing, packing_algorithm::first_fit_decreasing)
    ->Arg(4096)
    ->Arg(32768)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(at_once, first_fit_shuffle, packing_algorithm::first_fit_shuffle)
    ->Arg(4096)
    ->Arg(32768)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(at_once, modified_first_fit_decreasing,
                  packing_algorithm::modified_first_fit_decreasing)
    ->Arg(4096)
    ->Arg(32768)
    ->Iterations(1)
    ->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(random_row, mapped, index_access::map_with_read_ahead)
    ->Arg(4096)
    ->Arg(32768)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(random_row, read, index_access::pread)
    ->Arg(4096)
    ->Arg(32768)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace millrace::dataset
