// SPDX-License-Identifier: Apache-2.0
/// Measures the resources of a rank with thousands of sources: open files, memory mappings,
/// threads, time and memory. The loader serves a blend of all sources with equal weights, in
/// batches of 8 rows of 4,096 tokens, with its default checks. The program creates SOURCES datasets
/// in FOLDER, each with 1 MiB of tokens and a `.sum` file, and removes them at the end. Because the
/// datasets are new, they are in the page cache. Each line of the printed table is measured in a
/// new process.
///
/// usage: bench_many_sources FOLDER [SOURCES=2000] [ROWS=20000]
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/batch_loader.hpp>
#include <millrace/loader/loader_report.hpp>

#include "bench/support/process_figures.hpp"
#include "support/summed_dataset.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace {

using namespace millrace;
using clock = std::chrono::steady_clock;
using prefixes = std::vector<std::filesystem::path>;

constexpr std::int64_t batch_size = 8;
constexpr std::int64_t seq_len = 4096;

double since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

double processor_seconds() {
  ::timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Creates a dataset whose documents have 640 tokens each.
void make_dataset(const std::filesystem::path& prefix, std::size_t number) {
  constexpr std::size_t documents = (std::size_t{1} << 20) / (640 * sizeof(std::uint16_t));
  test::documents_of<std::uint16_t> all(documents, {std::vector<std::uint16_t>(640)});
  for (std::size_t d = 0; d < documents; ++d) {
    for (std::size_t t = 0; t < 640; ++t) {
      all[d][0][t] = static_cast<std::uint16_t>((number + d * 640 + t) % 32000);
    }
  }
  test::write_dataset<std::uint16_t>(prefix, all);
  test::write_sums(prefix);
}

dataset::instant_run instant(const prefixes& all, std::int64_t samples) {
  dataset::instant_options options;
  options.seq_len = seq_len;
  options.train_samples = samples;
  options.first_position_of = [](std::int64_t step) { return step * batch_size; };
  options.segments.push_back({0, {}});
  std::vector<dataset::instant_source> sources;
  for (const auto& prefix : all) {
    options.segments[0].sources.push_back({static_cast<std::int64_t>(sources.size()), 1});
    sources.push_back({prefix, "", {}, {}});
  }
  return {sources, options};
}

/// Builds a run in Megatron's order. Its indices are in memory.
dataset::megatron_run megatron(const prefixes& all, std::int64_t samples) {
  dataset::data_blends data;
  data.split = "100,0,0";
  data.blend.emplace();
  for (const auto& prefix : all) data.blend->prefixes.push_back(prefix.string());
  if (all.size() > 1) data.blend->weights.assign(all.size(), 1);
  const dataset::data_plan plan = dataset::plan_data(data, {samples, 0, 0});
  return dataset::megatron_run::build(
      *plan[0], {.sequence_length = seq_len, .part = dataset::split_part::train}, data.split);
}

/// Serves one row per source and then `rows` more rows.
template <class Open>
void serve(const char* order, const Open& open, const prefixes& all, const std::string& reader,
           std::int64_t rows) {
  const long memory_before = bench::own_kilobytes();
  const long tables_before = bench::status_of("VmPTE");
  const auto sources = static_cast<std::int64_t>(all.size());
  auto begin = clock::now();
  loader::loader_options options = {.batch_size = batch_size, .fields = loader::no_host_fields};
  options.io.back_end = reader;
  loader::batch_loader loader(open(all, sources + rows + 2 * batch_size), options);
  const double made = since(begin);
  std::int64_t bytes = 0;
  const auto take = [&](std::int64_t batches) {
    for (; batches > 0; --batches) {
      const auto batch = loader.next();
      if (!batch) throw config_error("the run ended before all rows were served");
      bytes += static_cast<std::int64_t>(batch->bytes().size());
    }
    return since(begin);
  };
  const double first = take(1);
  const double each = take((sources + batch_size - 1) / batch_size - 1);
  begin = clock::now();
  const double spent = processor_seconds();
  const std::int64_t batches = rows / batch_size;
  const double later = take(batches) / static_cast<double>(batches * batch_size);
  const double spent_later =
      (processor_seconds() - spent) / static_cast<double>(batches * batch_size);
  const loader::reader_report report = loader.observe().readers.at(0);
  std::printf(
      "| %s | %s (%s) | %ld | %lld | %ld | %ld | %.3f | %.3f | %.3f | %.1f | %.1f | %.1f |"
      " %.1f |\n",
      order, reader.c_str(), report.granted.c_str(), bench::descriptor_count(),
      static_cast<long long>(report.most_open_files), bench::map_count(),
      bench::status_of("Threads"), made, first, each, later * 1e6, spent_later * 1e6,
      static_cast<double>(bench::own_kilobytes() - memory_before) / 1024,
      static_cast<double>(bench::status_of("VmPTE") - tables_before) / 1024);
}

/// Calls `work` in a child process, so that each measurement has a new process.
template <class Work>
void in_child(const Work& work) {
  (void)std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid < 0) throw io_error("(process)", "fork", errno);
  if (pid == 0) {
    int status = 1;
    try {
      work();
      status = 0;
    } catch (const std::exception& e) {
      (void)std::fprintf(stderr, "bench_many_sources: %s\n", e.what());
    }
    (void)std::fflush(stdout);
    ::_exit(status);
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid || status != 0) {
    throw config_error("a run failed; its message is above");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw config_error("usage: bench_many_sources FOLDER [SOURCES=2000] [ROWS=20000]");
  const std::size_t sources = argc > 2 ? std::stoul(argv[2]) : 2000;
  const std::int64_t rows = argc > 3 ? std::stoll(argv[3]) : 20000;
  if (sources < 1 || rows < batch_size) {
    throw config_error("SOURCES must be at least 1, ROWS at least 8");
  }
  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "many_sources";
  std::filesystem::create_directories(folder);
  prefixes all;
  for (std::size_t i = 0; i < sources; ++i) {
    all.push_back(folder / std::to_string(i));
    make_dataset(all.back(), i);
  }
  std::puts(
      "| order | reader (granted) | descriptors | those of readers, most | maps | threads | made, "
      "s | "
      "first batch, s | each source once, s | us per later row | CPU us per row | MB | "
      "page tables, MB |");
  std::puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const char* reader : {"auto", "mmap", "pread", "io_uring"}) {
    in_child([&] { serve("instant", instant, all, reader, rows); });
  }
  in_child([&] { serve("megatron", megatron, all, "auto", rows); });
  std::filesystem::remove_all(folder);
  return 0;
} catch (const std::exception& e) {
  (void)std::fprintf(stderr, "bench_many_sources: %s\n", e.what());
  return 1;
}
