// SPDX-License-Identifier: Apache-2.0
//
// Serves batches and prints a checksum of each batch. Resumes from the loader state in STATE_IN,
// unless it is `-`, and saves the state to STATE_OUT at the end. compare_builds.py compiles this
// file with two versions of the library.
//
//   serve instant|stored BATCHES STATE_IN|- STATE_OUT PREFIX WEIGHT [PREFIX WEIGHT ...]

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#if __has_include(<millrace/dataset/instant_run.hpp>)
#include <millrace/dataset/instant_run.hpp>
#else  // the path of this header in November 2026
#include <millrace/dataset/run/instant_run.hpp>
#endif
#include <millrace/loader/batch_loader.hpp>

namespace dataset = millrace::dataset;
namespace loader = millrace::loader;

namespace {

// Returns the FNV-1a hash of the batch.
std::uint64_t checksum(const loader::batch& batch) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::byte byte : batch.bytes()) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211U;
  }
  return hash;
}

void serve(loader::batch_loader& batches, int count, const std::string& in,
           const std::string& out) {
  if (in != "-") {
    std::ifstream saved(in);
    batches.load_state(std::string(std::istreambuf_iterator<char>(saved), {}));
  }
  for (int i = 0; i < count; ++i) {
    const auto batch = batches.next();
    if (!batch) break;
    std::cout << batch->step() << ' ' << batch->first_sample() << ' ' << checksum(*batch) << '\n';
  }
  std::ofstream(out) << dataset::write_state(batches.state());
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 7) return 2;
  const std::string order = argv[1];
  std::vector<dataset::instant_source> sources;
  dataset::schedule_segment blend;
  for (int i = 5; i + 1 < argc; i += 2) {
    blend.sources.push_back({static_cast<std::int64_t>(sources.size()), std::stod(argv[i + 1])});
    sources.emplace_back();
    sources.back().prefix = argv[i];
  }
  if (order == "stored") {
    const dataset::indexed_dataset data(sources.at(0).prefix);
    loader::batch_loader batches(data, {.batch_size = 4, .seq_len = 64});
    serve(batches, std::stoi(argv[2]), argv[3], argv[4]);
  } else {
    dataset::instant_options options;
    options.seed = 1234;
    options.seq_len = 64;
    options.segments = {blend};
    options.first_position_of = [](std::int64_t step) { return 4 * step; };
    loader::batch_loader batches(dataset::instant_run(sources, options), {.batch_size = 4});
    serve(batches, std::stoi(argv[2]), argv[3], argv[4]);
  }
} catch (const std::exception& e) {
  std::cerr << "serve: " << e.what() << '\n';
  return 1;
}
