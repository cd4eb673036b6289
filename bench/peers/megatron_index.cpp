// SPDX-License-Identifier: Apache-2.0
//
// Builds Megatron's index caches for one dataset, and prints one line of JSON. The script
// bench/peers/megatron_index runs this program.
//
//   bench_megatron_index PREFIX FOLDER SEQUENCE_LENGTH SAMPLES SEED THREADS TOKENIZER_JSON
//   bench_megatron_index limits NUMBERS OUTPUT_BYTES
//
// The second form measures what the machine allows: a shuffle of NUMBERS 32-bit integers whose
// random positions were drawn before, with and without huge pages, and how long it takes to store
// and to copy OUTPUT_BYTES bytes.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include <millrace/dataset/detail/megatron/gpt_cache.hpp>
#include <millrace/dataset/detail/megatron/large_array.hpp>
#include <millrace/dataset/detail/megatron/numpy_random.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/indexed_dataset.hpp>

using namespace millrace;
using namespace millrace::dataset;

namespace {

double now(::clockid_t clock) {
  ::timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Returns a value of /proc/self/status, in kilobytes.
long status_kb(const char* name) {
  long kb = 0;
  char line[256];
  std::FILE* file = std::fopen("/proc/self/status", "r");
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::string(line).starts_with(name))
      (void)std::sscanf(line + std::string(name).size(), ": %ld", &kb);
  }
  if (file != nullptr) (void)std::fclose(file);
  return kb;
}

template <class Work>
double seconds_of(Work&& work) {
  const double begin = now(CLOCK_MONOTONIC);
  work();
  return now(CLOCK_MONOTONIC) - begin;
}

// Shuffles as numpy does, but with positions that were drawn before. Each swap is requested well
// before its turn, so this is what the memory allows.
double swap_seconds(std::span<const std::uint32_t> positions, bool huge_pages) {
  large_array<std::uint32_t> array(positions.size() + 1);
  const std::span<std::uint32_t> numbers = array.numbers();
  if (!huge_pages) (void)::madvise(numbers.data(), numbers.size_bytes(), MADV_NOHUGEPAGE);
  std::iota(numbers.begin(), numbers.end(), 0U);
  constexpr std::size_t ahead = 64;
  return seconds_of([&] {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (i + ahead < positions.size()) {
        __builtin_prefetch(numbers.data() + positions[i + ahead], 1);
      }
      std::swap(numbers[positions.size() - i], numbers[positions[i]]);
    }
  });
}

void print_limits(std::size_t count, std::size_t output_bytes) {
  large_array<std::uint32_t> positions(count - 1);
  numpy_random(1234).intervals(static_cast<std::uint32_t>(count - 1), positions.numbers());
  const double huge = swap_seconds(positions.numbers(), true);
  const double small = swap_seconds(positions.numbers(), false);
  large_array<std::byte> from(output_bytes);
  large_array<std::byte> to(output_bytes);
  for (auto* array : {&from, &to}) std::memset(array->numbers().data(), 1, output_bytes);
  const double store = seconds_of([&] { std::memset(to.numbers().data(), 2, output_bytes); });
  const double copy =
      seconds_of([&] { std::memcpy(to.numbers().data(), from.numbers().data(), output_bytes); });
  std::printf("{\"swaps\": %.4f, \"swaps_small_pages\": %.4f, \"store\": %.4f, \"copy\": %.4f}\n",
              huge, small, store, copy);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4 && std::string(argv[1]) == "limits") {
      print_limits(std::stoul(argv[2]), std::stoul(argv[3]));
      return 0;
    }
    if (argc != 8) return 2;
    gpt_description description;
    description.dataset_path = argv[1];
    description.sequence_length = std::stoll(argv[3]);
    description.num_samples = std::stoll(argv[4]);
    description.random_seed = static_cast<std::uint32_t>(std::stoul(argv[5]));
    description.split = "100,0,0";
    description.tokenizer = read_python_json(argv[7]);
    const double wall = now(CLOCK_MONOTONIC);
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    const indexed_dataset data(argv[1], {.check = check_level::quick});
    const large_array<std::int32_t> copy = large_copy(data.index().lengths);
    data.let_go_of_index();
    const formats::unaligned_span<std::int32_t> lengths(copy.bytes());
    const sequence_range all{0, data.sequence_count()};
    const gpt_request request{description.sequence_length, description.num_samples,
                              split_part::train, description.random_seed};
    const gpt_plan plan = plan_gpt_index(request, all, count_tokens(lengths, all, 0), argv[1]);
    gpt_cache(argv[2], description).build(plan, lengths, argv[1], std::stoi(argv[6]));
    std::printf(
        "{\"wall\": %.4f, \"cpu\": %.4f, \"epochs\": %ld, \"samples\": %ld, \"rss_mb\": %.1f, "
        "\"anonymous_mb\": %.1f, \"name\": \"%s\"}\n",
        now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu,
        static_cast<long>(plan.epochs), static_cast<long>(plan.samples),
        static_cast<double>(status_kb("VmHWM")) / 1024,
        static_cast<double>(status_kb("RssAnon")) / 1024, description.cache_name().c_str());
  } catch (const std::exception& e) {
    (void)std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
