// SPDX-License-Identifier: Apache-2.0
/// Measures one way to read random windows of a file that is not in the page cache. Prints one line
/// of JSON. The script bench/peers/cold_reads runs this program. One thread reads batches of
/// windows into reused memory. It also adds up the bytes of the windows, because a consumer would
/// touch them too. After the measurement, the program reads the same windows with pread(2), adds up
/// their bytes and compares the two sums.
///
/// usage: bench_cold_reads FILE WAY [NAME=NUMBER ...]
///   WAY      memmap: a plain memory mapping with the kernel's read-ahead, like numpy.memmap
///            libaio
///            mmap, mmap_random, pread or io_uring: one of millrace's readers
///            evict: reads nothing
///   windows=2000 bytes=8192 batch=8 ahead=192 depth=64 seed=1 align=2
#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <millrace/io/detail/residency.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>

#include "libaio_reader.hpp"

#if defined(MILLRACE_HAS_URING)
#include "io/uring_reader.hpp"
#endif

namespace {

using namespace millrace;
using clock = std::chrono::steady_clock;

struct setting {
  std::filesystem::path file;
  std::map<std::string, std::uint64_t> numbers{{"windows", 2000}, {"bytes", 8192}, {"batch", 8},
                                               {"ahead", 192},    {"depth", 64},   {"seed", 1},
                                               {"align", 2}};
  std::uint64_t operator[](const char* name) const { return numbers.at(name); }
};

double seconds(::timeval t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

/// Returns the number of bytes that this process has caused to be read from disk.
std::uint64_t disk_bytes() {
  std::ifstream in("/proc/self/io");
  for (std::string key; in >> key;) {
    std::uint64_t value = 0;
    in >> value;
    if (key == "read_bytes:") return value;
  }
  return 0;
}

std::uint64_t sum_of(const std::byte* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, 8);
    sum += word;
  }
  return sum;
}

/// Drops the pages of a file from the page cache.
/// @return the share of the file that is still in memory, or -1 if the share is unknown
double evict(const std::filesystem::path& path) {
  const io::unique_fd fd = io::open_read_only(path);
  const std::uint64_t size = io::regular_file_size(fd, path);
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  return io::resident_share(fd.get(), 0, size).value_or(-1);
}

std::vector<loader::file_range> random_windows(const setting& s, std::uint64_t size) {
  std::mt19937_64 random(s["seed"]);
  const std::uint64_t places = (size - s["bytes"]) / s["align"];
  std::vector<loader::file_range> windows(s["windows"] / s["batch"] * s["batch"]);
  for (auto& w : windows) w = {0, random() % places * s["align"], s["bytes"]};
  return windows;
}

struct result {
  std::vector<double> waits;  // seconds per batch
  std::uint64_t sum = 0;
};

// Copies windows from a plain memory mapping, as numpy.memmap and Megatron's reader do.
result by_memmap(const setting& s, const std::vector<loader::file_range>& windows) {
  const io::file_mapping map(s.file);
  std::vector<std::byte> memory(s["batch"] * s["bytes"]);
  result r;
  for (std::size_t i = 0; i < windows.size(); i += s["batch"]) {
    const auto begin = clock::now();
    for (std::size_t k = 0; k < s["batch"]; ++k) {
      std::memcpy(memory.data() + k * s["bytes"], map.bytes().data() + windows[i + k].offset,
                  s["bytes"]);
    }
    r.waits.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    r.sum += sum_of(memory.data(), memory.size());
  }
  return r;
}

result by_libaio(const setting& s, const std::vector<loader::file_range>& windows) {
  bench::libaio_reader reader(s.file, s["depth"], s["bytes"]);
  std::vector<std::byte> memory(s["batch"] * s["bytes"]);
  result r;
  std::size_t done = 0;
  auto begin = clock::now();
  reader.read(windows, [&](std::size_t, const std::byte* bytes) {
    std::byte* const to = memory.data() + done % s["batch"] * s["bytes"];
    std::memcpy(to, bytes, s["bytes"]);
    if (++done % s["batch"] != 0) return;
    r.waits.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    r.sum += sum_of(memory.data(), memory.size());
    begin = clock::now();
  });
  return r;
}

// Reads windows with one of millrace's readers. Tells the reader about each window in advance,
// `ahead` windows before it is gathered.
result by_reader(const setting& s, const std::vector<loader::file_range>& windows,
                 loader::range_reader& reader) {
  const std::size_t batch = s["batch"];
  const std::size_t ahead = s["ahead"] / batch * batch;
  std::vector<std::byte> memory(batch * s["bytes"]);
  std::vector<loader::read_request> requests(batch);
  const std::span<const loader::file_range> all(windows);
  result r;
  const auto announce = [&](std::size_t from, std::size_t to) {
    const std::size_t end = std::min(to, all.size());
    if (from < end) reader.prefetch(all.subspan(from, end - from));
  };
  announce(0, ahead);
  for (std::size_t i = 0; i < windows.size(); i += batch) {
    const auto begin = clock::now();
    if (ahead > 0) announce(i + ahead, i + ahead + batch);
    for (std::size_t k = 0; k < batch; ++k) {
      requests[k] = {windows[i + k], memory.data() + k * s["bytes"]};
    }
    reader.gather(requests);
    r.waits.push_back(std::chrono::duration<double>(clock::now() - begin).count());
    r.sum += sum_of(memory.data(), memory.size());
  }
  return r;
}

std::unique_ptr<loader::range_reader> make(const setting& s, const std::string& way,
                                           std::uint64_t size) {
  const std::vector<loader::data_file> files{{s.file, size}};
  loader::reader_options options;
  options.gather_threads = 1;
  if (way == "mmap") return std::make_unique<loader::mmap_reader>(files, options);
  options.advice = loader::map_advice::random;
  if (way == "mmap_random") return std::make_unique<loader::mmap_reader>(files, options);
  if (way == "pread") return std::make_unique<loader::pread_reader>(files, options);
#if defined(MILLRACE_HAS_URING)
  if (way == "io_uring") {
    loader::uring_options ring;
    ring.depth = static_cast<int>(s["depth"]);
    return std::make_unique<loader::uring_reader>(files, options, ring);
  }
#endif
  throw config_error(way + ": unknown way, or not in this build");
}

double part(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

void run(const setting& s, const std::string& way) {
  const double cached = evict(s.file);
  std::uint64_t size = 0;
  {
    const io::unique_fd fd = io::open_read_only(s.file);
    size = io::regular_file_size(fd, s.file);
  }
  const auto windows = random_windows(s, size);
  const std::uint64_t disk = disk_bytes();
  ::rusage before{};
  (void)::getrusage(RUSAGE_SELF, &before);
  const auto begin = clock::now();
  result r = way == "memmap"   ? by_memmap(s, windows)
             : way == "libaio" ? by_libaio(s, windows)
                               : by_reader(s, windows, *make(s, way, size));
  const double wall = std::chrono::duration<double>(clock::now() - begin).count();
  ::rusage after{};
  (void)::getrusage(RUSAGE_SELF, &after);
  const std::uint64_t read = disk_bytes() - disk;

  std::uint64_t sum = 0;
  const io::unique_fd fd = io::open_read_only(s.file);
  std::vector<std::byte> memory(s["bytes"]);
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_RANDOM);
  for (const auto& w : windows) {
    if (::pread(fd.get(), memory.data(), w.bytes, static_cast<::off_t>(w.offset)) !=
        static_cast<::ssize_t>(w.bytes)) {
      throw io_error(s.file, "pread", errno);
    }
    sum += sum_of(memory.data(), memory.size());
  }
  if (sum != r.sum) throw config_error(way + ": read other bytes than pread");

  std::ranges::sort(r.waits);
  const auto count = static_cast<double>(windows.size());
  std::printf(
      "{\"way\": \"%s\", \"us_a_window\": %.3f, \"cpu_us\": %.3f, \"p50_us\": %.1f, \"p99_us\": "
      "%.1f, "
      "\"most_us\": %.1f, \"disk_bytes\": %.3f, \"major_faults\": %ld, \"cached_before\": %.5f}\n",
      way.c_str(), wall / count * 1e6,
      (seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) -
       seconds(before.ru_stime)) /
          count * 1e6,
      part(r.waits, 0.5) * 1e6, part(r.waits, 0.99) * 1e6, r.waits.back() * 1e6,
      static_cast<double>(read) / count / static_cast<double>(s["bytes"]),
      after.ru_majflt - before.ru_majflt, cached);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw config_error("usage: bench_cold_reads FILE WAY [NAME=NUMBER ...]");
  setting s;
  s.file = argv[1];
  for (int i = 3; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t at = argument.find('=');
    if (at == std::string::npos || !s.numbers.contains(argument.substr(0, at))) {
      throw config_error(argument + ": expected NAME=NUMBER");
    }
    s.numbers[argument.substr(0, at)] = std::stoull(argument.substr(at + 1));
  }
  if (argv[2] == std::string("evict")) return evict(s.file) < 0.001 ? 0 : 1;
  run(s, argv[2]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_cold_reads: %s\n", e.what());
  return 1;
}
