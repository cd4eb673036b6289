// SPDX-License-Identifier: Apache-2.0
//
// Measures how fast readers gather windows of a cached file into the slots of a ring. A window is
// the byte range of a row. A ring consists of a few slots, which are reused; a slot is the buffer
// of one batch. The readers gather the windows in random order. The upper bound of the speed (the
// "roof") is the speed of one thread that copies the same windows in file order, with memcpy, from
// a memory mapping into the same ring.
//
//   gather_bench --benchmark_repetitions=9 --benchmark_report_aggregates_only=true
//
// A window has 4,096 uint16 tokens (8,192 bytes) or 4,097 uint16 tokens (8,194 bytes). `threads` is
// the number of threads that a gather may use. `bytes_per_second` counts copied bytes. On a busy
// machine, compare the CPU times of runs with one thread.
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>

#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "support/paths.hpp"

namespace millrace::loader {
namespace {

constexpr std::size_t file_bytes = std::size_t{1} << 30;  // larger than most caches
constexpr std::size_t slots = 8;

/// Returns a file in the folder for temporary files. Its bytes are in the page cache.
const data_file& warm_file() {
  static const test::temp_folder folder;
  static const data_file file = [] {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> words(file_bytes / 8);
    for (std::uint64_t& word : words) word = random() % 32000 * 0x0001000100010001U;
    test::write_bytes(folder / "data.bin", std::as_bytes(std::span(words)));
    return data_file{folder / "data.bin", file_bytes};
  }();
  return file;
}

/// The slots of a ring, in one block of memory. All pages of the block have been touched.
class ring {
 public:
  explicit ring(std::size_t slot_bytes) : slot_bytes_(slot_bytes), memory_(slot_bytes * slots) {
    (void)::madvise(memory_.data(), memory_.size(), MADV_HUGEPAGE);
    std::ranges::fill(memory_, std::byte{1});
  }
  std::byte* next() noexcept {
    at_ = (at_ + 1) % slots;
    return memory_.data() + at_ * slot_bytes_;
  }

 private:
  std::size_t slot_bytes_;
  std::vector<std::byte> memory_;
  std::size_t at_ = 0;
};

struct shape {
  std::size_t rows;
  std::size_t row_bytes;
  std::size_t windows() const { return file_bytes / row_bytes; }
  explicit shape(const benchmark::State& state)
      : rows(static_cast<std::size_t>(state.range(0))),
        row_bytes(static_cast<std::size_t>(state.range(1))) {}
};

void report(benchmark::State& state, const shape& s) {
  state.SetBytesProcessed(static_cast<std::int64_t>(s.rows * s.row_bytes) * state.iterations());
}

void memcpy_in_file_order(benchmark::State& state) {
  const shape s(state);
  static const io::file_mapping map(warm_file().path);
  benchmark::DoNotOptimize(std::ranges::count(map.bytes(), std::byte{}));
  ring to(s.rows * s.row_bytes);
  std::size_t window = 0;
  for (auto _ : state) {
    std::byte* slot = to.next();
    for (std::size_t row = 0; row < s.rows; ++row) {
      std::memcpy(slot + row * s.row_bytes, map.bytes().data() + window * s.row_bytes, s.row_bytes);
      if (++window == s.windows()) window = 0;
    }
    benchmark::DoNotOptimize(slot);
    benchmark::ClobberMemory();
  }
  report(state, s);
}

/// Returns a reader that has already read the whole file, so that no page faults occur during the
/// measurement.
template <class Reader>
Reader& warm_reader(int threads) {
  static std::map<int, Reader> readers;
  const auto [at, is_new] = readers.try_emplace(threads, std::vector<data_file>{warm_file()},
                                                reader_options{.gather_threads = threads});
  if (is_new) {
    std::vector<std::byte> memory(std::size_t{1} << 20);
    for (std::uint64_t offset = 0; offset < file_bytes; offset += memory.size()) {
      const read_request request{{0, offset, memory.size()}, memory.data()};
      at->second.gather({&request, 1});
    }
  }
  return at->second;
}

template <class Reader>
void gather_at_random(benchmark::State& state) {
  const shape s(state);
  Reader& reader = warm_reader<Reader>(static_cast<int>(state.range(2)));
  std::vector<std::uint32_t> order(s.windows());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::shuffle(order, std::mt19937_64(2));
  ring to(s.rows * s.row_bytes);
  std::vector<read_request> requests(s.rows);
  std::size_t next = 0;
  const auto gather = [&] {
    std::byte* slot = to.next();
    for (std::size_t row = 0; row < s.rows; ++row) {
      requests[row] = {{0, order[next] * s.row_bytes, s.row_bytes}, slot + row * s.row_bytes};
      if (++next == order.size()) next = 0;
    }
    reader.gather(requests);
    benchmark::DoNotOptimize(slot);
    benchmark::ClobberMemory();
  };
  for (auto _ : state) gather();
  report(state, s);
}

// Arguments: number of rows, bytes per row.
void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 8192})->Args({256, 8192})->ArgNames({"rows", "bytes"})->UseRealTime();
}
void shapes_and_threads(benchmark::internal::Benchmark* bench) {
  bench->Args({8, 8192, 1})
      ->Args({8, 8194, 1})
      ->Args({256, 8192, 1})
      ->Args({256, 8192, 2})
      ->ArgNames({"rows", "bytes", "threads"})
      ->UseRealTime();
}

BENCHMARK(memcpy_in_file_order)->Apply(shapes);
BENCHMARK(gather_at_random<mmap_reader>)->Apply(shapes_and_threads);
BENCHMARK(gather_at_random<pread_reader>)->Apply(shapes_and_threads);

}  // namespace
}  // namespace millrace::loader
