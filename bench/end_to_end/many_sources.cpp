// SPDX-License-Identifier: Apache-2.0
/// What a rank with thousands of sources takes: files open, maps, threads, seconds, memory, by each
/// way of reading. Files of 1 MiB each are made in FOLDER and removed again; they are warm.
///
/// usage: bench_many_sources FOLDER [SOURCES=2000] [WINDOWS=20000]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <millrace/loader/io/make_reader.hpp>

#include "bench/support/process_figures.hpp"

namespace {

using namespace millrace;
using clock = std::chrono::steady_clock;

constexpr std::uint64_t file_bytes = std::uint64_t{1} << 20;
constexpr std::size_t batch = 8;
constexpr std::size_t ahead = 64;
constexpr std::uint64_t window = 8192;

double since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}

void run(const std::vector<loader::data_file>& files, const std::string& way, std::size_t count) {
  const long memory_before = bench::own_kilobytes();
  const long tables_before = bench::status_of("VmPTE");
  auto begin = clock::now();
  loader::io_options options;
  options.back_end = way;
  const auto reader = loader::make_reader(files, options);
  const double made = since(begin);

  std::vector<std::byte> memory(batch * window);
  std::vector<loader::read_request> requests(batch);
  const auto gather = [&](const std::vector<loader::file_range>& windows) {
    const std::span<const loader::file_range> all(windows);
    reader->prefetch(all.first(std::min(ahead, all.size())));
    for (std::size_t i = 0; i + batch <= all.size(); i += batch) {
      if (i + ahead + batch <= all.size()) reader->prefetch(all.subspan(i + ahead, batch));
      for (std::size_t k = 0; k < batch; ++k) {
        requests[k] = {all[i + k], memory.data() + k * window};
      }
      reader->gather(requests);
    }
  };
  std::mt19937_64 random(1);
  std::vector<loader::file_range> each(files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    each[i] = {static_cast<std::int64_t>(i), random() % (file_bytes - window), window};
  }
  std::vector<loader::file_range> windows(count);
  for (auto& w : windows) {
    w = {static_cast<std::int64_t>(random() % files.size()), random() % (file_bytes - window),
         window};
  }
  begin = clock::now();
  gather(each);
  const double first = since(begin);
  begin = clock::now();
  gather(windows);
  const double later = since(begin);
  const loader::reader_report report = reader->report();
  std::printf("| %s | %s | %ld | %ld | %ld | %.4f | %.3f | %.2f | %.1f | %.1f |\n", way.c_str(),
              report.granted.c_str(), bench::descriptor_count(), bench::map_count(),
              bench::status_of("Threads"), made, first, later / static_cast<double>(count) * 1e6,
              static_cast<double>(bench::own_kilobytes() - memory_before) / 1024,
              static_cast<double>(bench::status_of("VmPTE") - tables_before) / 1024);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2)
    throw config_error("usage: bench_many_sources FOLDER [SOURCES=2000] [WINDOWS=20000]");
  const std::size_t sources = argc > 2 ? std::stoul(argv[2]) : 2000;
  const std::size_t windows = argc > 3 ? std::stoul(argv[3]) : 20000;
  const std::filesystem::path folder = std::filesystem::path(argv[1]) / "many_sources";
  std::filesystem::create_directories(folder);
  std::vector<loader::data_file> files;
  const std::string contents(file_bytes, 'x');
  for (std::size_t i = 0; i < sources; ++i) {
    files.push_back({folder / (std::to_string(i) + ".bin"), file_bytes});
    std::ofstream(files.back().path, std::ios::binary) << contents;
  }
  std::puts(
      "| asked | granted | descriptors | maps | threads | made, s | first windows, s | us a window "
      "later | MB | page tables, MB |");
  std::puts("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
  for (const char* way : {"auto", "mmap", "pread", "io_uring"}) run(files, way, windows);
  std::filesystem::remove_all(folder);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_many_sources: %s\n", e.what());
  return 1;
}
