// SPDX-License-Identifier: Apache-2.0
//
// Counts the ids and lengths of a dataset through a new map of its files, and prints one line of
// JSON. The script bench/peers/stats runs this program.
//
//   bench_stats PREFIX [WORKERS] [duplicates | ngrams N]
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/statistics.hpp>

using namespace millrace;

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return 2;
  const std::string what = words.size() > 2 ? words[2] : "counts";
  const auto begin = std::chrono::steady_clock::now();
  std::vector<dataset::indexed_dataset> data;
  data.emplace_back(words[0]);
  dataset::statistics_options options;
  if (words.size() > 1) options.workers = std::atoi(words[1].c_str());
  std::int64_t found = 0;
  double entropy = 0;
  if (what == "duplicates") {
    found = dataset::find_duplicates(data, {}, options).documents;
  } else if (what == "ngrams") {
    const std::int64_t n = words.size() > 3 ? std::atoll(words[3].c_str()) : 50;
    found = dataset::find_repeated_ngrams(data, {.n = n}, options).distinct;
  } else {
    const auto counted = dataset::statistics_of(data[0], options);
    found = counted.ids.distinct();
    entropy = counted.ids.entropy();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf(
      "{\"s\": %.9f, \"found\": %lld, \"entropy\": %.9f, \"tokens\": %lld, \"bytes\": %llu}\n",
      seconds.count(), static_cast<long long>(found), entropy,
      static_cast<long long>(data[0].token_count()),
      static_cast<unsigned long long>(data[0].bin_size_bytes()));
} catch (const std::exception& e) {
  std::fprintf(stderr, "bench_stats: %s\n", e.what());
  return 1;
}
