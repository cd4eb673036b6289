// SPDX-License-Identifier: Apache-2.0
/// Tests whether the resource use of a loader grows over time. The loader serves a shuffled blend
/// of all PREFIXes as fast as it can, for SECONDS seconds, with its default checks and telemetry.
/// Every minute, the program reloads the loader's state and prints one row. The exit status is 1 if
/// resource use grew too much in the second half of the time. For descriptors, memory mappings and
/// threads, the limit of growth is 1 %. For private memory, it is 1 % or 4 MiB, whichever is
/// larger. The first half does not count, because the size of the heap becomes stable only after
/// about a dozen reloads.
///
/// usage: bench_soak SECONDS PREFIX [PREFIX...]
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/instant_run.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/loader_report.hpp>

#include "bench/support/process_figures.hpp"

namespace {

using namespace millrace;
using clock = std::chrono::steady_clock;

constexpr std::int64_t rows = 8;
constexpr std::int64_t seq_len = 4096;

struct figures {
  long own_kilobytes = bench::own_kilobytes();
  long descriptors = bench::descriptor_count();
  long maps = bench::map_count();
  long threads = bench::status_of("Threads");
};

dataset::instant_run blend_of(const std::vector<std::string>& prefixes) {
  dataset::instant_options options;
  options.seed = 1;
  options.seq_len = seq_len;
  options.train_samples = std::int64_t{1} << 50;
  options.first_position_of = [](std::int64_t step) { return step * rows; };
  dataset::schedule_segment all{0, {}};
  std::vector<dataset::instant_source> sources;
  for (const std::string& prefix : prefixes) {
    all.sources.push_back({static_cast<std::int64_t>(sources.size()), 1.0});
    sources.push_back({prefix, "", {}, {}});
  }
  options.segments.push_back(all);
  return dataset::instant_run(sources, options);
}

/// Serves batches until the time `end`. Returns the number of batches. Adds one token and one label
/// of every batch to `sum`, so that every batch is read.
std::int64_t serve(loader::batch_loader& loader, clock::time_point end, std::int64_t& sum) {
  std::int64_t batches = 0;
  while (clock::now() < end) {
    const auto batch = loader.next();
    if (!batch) throw config_error("the run ended before the time was over");
    sum += batch->tokens().front() + batch->labels().back();
    ++batches;
  }
  return batches;
}

bool has_grown(const char* what, long first, long last, long spare) {
  if (last - first <= std::max(first / 100, spare)) return false;
  std::fprintf(stderr, "bench_soak: %s grew to %ld, from %ld at half time\n", what, last, first);
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw config_error("usage: bench_soak SECONDS PREFIX [PREFIX...]");
  const std::chrono::seconds all(std::stol(argv[1]));
  const std::vector<std::string> prefixes(argv + 2, argv + argc);
  const loader::loader_options options = {.batch_size = rows, .threads = 2};
  loader::batch_loader loader(blend_of(prefixes), options);

  const auto minute = std::min<std::chrono::seconds>(std::chrono::minutes(1), all / 4);
  const auto half_time = clock::now() + all / 2;
  const auto end = clock::now() + all;
  std::int64_t sum = 0;
  std::optional<figures> early;  // figures at half time
  std::puts("| batches/s | p99 wait, us | own memory, MB | descriptors | maps | threads |");
  std::puts("| --- | --- | --- | --- | --- | --- |");
  while (clock::now() < end) {
    const auto begin = clock::now();
    const std::int64_t batches = serve(loader, std::min(begin + minute, end), sum);
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    const figures now;
    std::printf(
        "| %.0f | %.1f | %.1f | %ld | %ld | %ld |\n", static_cast<double>(batches) / seconds,
        static_cast<double>(loader.observe().times.waits.quantile_ns(0.99)) * 1e-3,
        static_cast<double>(now.own_kilobytes) / 1024, now.descriptors, now.maps, now.threads);
    std::fflush(stdout);
    if (!early && clock::now() >= half_time) early = now;
    loader.load_state(dataset::write_state(loader.state()));
  }
  const figures late;
  std::printf("checksum of the served tokens %lld\n", static_cast<long long>(sum));
  const bool memory = has_grown("own memory, kB", early->own_kilobytes, late.own_kilobytes, 4096);
  const bool files = has_grown("descriptors", early->descriptors, late.descriptors, 0);
  const bool maps = has_grown("maps", early->maps, late.maps, 0);
  const bool threads = has_grown("threads", early->threads, late.threads, 0);
  return memory || files || maps || threads ? 1 : 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_soak: %s\n", e.what());
  return 2;
}
